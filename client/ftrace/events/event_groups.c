#include "client/ftrace/events/event_groups.h"

/*
 * Groups are the kernel's.  binder, dmabuf_heap, fs, gpu_mem and synthetic are
 * Android's; names that only its kernels have are among the others as well.
 */
static const struct event_group groups[] = {
	{ "binder",
	    "binder_command binder_lock binder_locked binder_return "
	    "binder_set_priority binder_transaction "
	    "binder_transaction_alloc_buf binder_transaction_received "
	    "binder_unlock" },
	{ "block",
	    "block_bio_backmerge block_bio_bounce block_bio_complete "
	    "block_bio_frontmerge block_bio_queue block_bio_remap "
	    "block_dirty_buffer block_getrq block_io_done "
	    "block_io_start block_plug block_rq_abort "
	    "block_rq_complete block_rq_insert block_rq_issue "
	    "block_rq_remap block_rq_requeue block_sleeprq "
	    "block_split block_touch_buffer block_unplug" },
	{ "cgroup",
	    "cgroup_attach_task cgroup_destroy_root cgroup_mkdir "
	    "cgroup_release cgroup_remount cgroup_rename cgroup_rmdir "
	    "cgroup_setup_root cgroup_transfer_tasks" },
	{ "clk",
	    "clk_disable clk_enable clk_set_rate" },
	{ "cma",
	    "cma_alloc_finish cma_alloc_info cma_alloc_start" },
	{ "compaction",
	    "mm_compaction_begin mm_compaction_defer_compaction "
	    "mm_compaction_defer_reset mm_compaction_deferred "
	    "mm_compaction_end mm_compaction_finished "
	    "mm_compaction_isolate_freepages "
	    "mm_compaction_isolate_migratepages "
	    "mm_compaction_kcompactd_sleep "
	    "mm_compaction_kcompactd_wake mm_compaction_migratepages "
	    "mm_compaction_suitable "
	    "mm_compaction_try_to_compact_pages "
	    "mm_compaction_wakeup_kcompactd" },
	{ "cpuhp",
	    "cpuhp_enter cpuhp_exit cpuhp_latency cpuhp_multi_enter "
	    "cpuhp_pause" },
	{ "devfreq",
	    "devfreq_frequency" },
	{ "dma_fence",
	    "dma_fence_emit dma_fence_init dma_fence_signaled "
	    "dma_fence_wait_end dma_fence_wait_start" },
	{ "dmabuf_heap",
	    "dma_heap_stat" },
	{ "drm",
	    "drm_vblank_event drm_vblank_event_delivered" },
	{ "dwc3",
	    "dwc3_alloc_request dwc3_complete_trb dwc3_ctrl_req "
	    "dwc3_ep_dequeue dwc3_ep_queue dwc3_event "
	    "dwc3_free_request dwc3_gadget_ep_cmd "
	    "dwc3_gadget_ep_disable dwc3_gadget_ep_enable "
	    "dwc3_gadget_generic_cmd dwc3_gadget_giveback "
	    "dwc3_prepare_trb" },
	{ "ext4",
	    "ext4_alloc_da_blocks ext4_allocate_blocks "
	    "ext4_allocate_inode ext4_begin_ordered_truncate "
	    "ext4_collapse_range ext4_da_release_space "
	    "ext4_da_reserve_space ext4_da_update_reserve_space "
	    "ext4_da_write_begin ext4_da_write_end "
	    "ext4_da_write_pages ext4_da_write_pages_extent "
	    "ext4_direct_IO_enter ext4_direct_IO_exit "
	    "ext4_discard_blocks ext4_discard_preallocations "
	    "ext4_drop_inode ext4_es_cache_extent "
	    "ext4_es_find_delayed_extent_range_enter "
	    "ext4_es_find_delayed_extent_range_exit "
	    "ext4_es_insert_extent ext4_es_lookup_extent_enter "
	    "ext4_es_lookup_extent_exit ext4_es_remove_extent "
	    "ext4_es_shrink ext4_es_shrink_count "
	    "ext4_es_shrink_scan_enter ext4_es_shrink_scan_exit "
	    "ext4_evict_inode ext4_ext_convert_to_initialized_enter "
	    "ext4_ext_convert_to_initialized_fastpath "
	    "ext4_ext_handle_unwritten_extents ext4_ext_in_cache "
	    "ext4_ext_load_extent ext4_ext_map_blocks_enter "
	    "ext4_ext_map_blocks_exit ext4_ext_put_in_cache "
	    "ext4_ext_remove_space ext4_ext_remove_space_done "
	    "ext4_ext_rm_idx ext4_ext_rm_leaf ext4_ext_show_extent "
	    "ext4_fallocate_enter ext4_fallocate_exit "
	    "ext4_find_delalloc_range ext4_forget ext4_free_blocks "
	    "ext4_free_inode ext4_get_implied_cluster_alloc_exit "
	    "ext4_get_reserved_cluster_alloc "
	    "ext4_ind_map_blocks_enter ext4_ind_map_blocks_exit "
	    "ext4_insert_range ext4_invalidatepage ext4_journal_start "
	    "ext4_journal_start_reserved "
	    "ext4_journalled_invalidatepage ext4_journalled_write_end "
	    "ext4_load_inode ext4_load_inode_bitmap "
	    "ext4_mark_inode_dirty ext4_mb_bitmap_load "
	    "ext4_mb_buddy_bitmap_load ext4_mb_discard_preallocations "
	    "ext4_mb_new_group_pa ext4_mb_new_inode_pa "
	    "ext4_mb_release_group_pa ext4_mb_release_inode_pa "
	    "ext4_mballoc_alloc ext4_mballoc_discard "
	    "ext4_mballoc_free ext4_mballoc_prealloc "
	    "ext4_other_inode_update_time ext4_punch_hole "
	    "ext4_read_block_bitmap_load ext4_readpage "
	    "ext4_releasepage ext4_remove_blocks ext4_request_blocks "
	    "ext4_request_inode ext4_sync_file_enter "
	    "ext4_sync_file_exit ext4_sync_fs ext4_trim_all_free "
	    "ext4_trim_extent ext4_truncate_enter ext4_truncate_exit "
	    "ext4_unlink_enter ext4_unlink_exit ext4_write_begin "
	    "ext4_write_end ext4_writepage ext4_writepages "
	    "ext4_writepages_result ext4_zero_range" },
	{ "f2fs",
	    "f2fs_background_gc f2fs_do_submit_bio f2fs_evict_inode "
	    "f2fs_fallocate f2fs_gc_begin f2fs_gc_end "
	    "f2fs_get_data_block f2fs_get_victim f2fs_iget "
	    "f2fs_iget_exit f2fs_iostat f2fs_iostat_latency "
	    "f2fs_lock_elapsed_time f2fs_new_inode f2fs_readpage "
	    "f2fs_reserve_new_block f2fs_set_page_dirty "
	    "f2fs_submit_write_page f2fs_sync_file_enter "
	    "f2fs_sync_file_exit f2fs_sync_fs f2fs_truncate "
	    "f2fs_truncate_blocks_enter f2fs_truncate_blocks_exit "
	    "f2fs_truncate_data_blocks_range "
	    "f2fs_truncate_inode_blocks_enter "
	    "f2fs_truncate_inode_blocks_exit f2fs_truncate_node "
	    "f2fs_truncate_nodes_enter f2fs_truncate_nodes_exit "
	    "f2fs_truncate_partial_nodes f2fs_unlink_enter "
	    "f2fs_unlink_exit f2fs_vm_page_mkwrite f2fs_write_begin "
	    "f2fs_write_checkpoint f2fs_write_end" },
	{ "filemap",
	    "mm_filemap_add_to_page_cache "
	    "mm_filemap_delete_from_page_cache" },
	{ "fs",
	    "do_sys_open open_exec" },
	{ "ftrace",
	    "funcgraph_entry funcgraph_exit print" },
	{ "gpu_mem",
	    "gpu_mem_total" },
	{ "gpu_scheduler",
	    "drm_run_job drm_sched_job drm_sched_job_add_dep "
	    "drm_sched_job_done drm_sched_job_queue drm_sched_job_run "
	    "drm_sched_job_unschedulable drm_sched_process_job" },
	{ "i2c",
	    "i2c_read i2c_reply i2c_result i2c_write" },
	{ "ipi",
	    "ipi_entry ipi_exit ipi_raise" },
	{ "irq",
	    "irq_handler_entry irq_handler_exit softirq_entry "
	    "softirq_exit softirq_raise" },
	{ "irq_vectors",
	    "local_timer_entry local_timer_exit" },
	{ "kmem",
	    "dmabuf_rss_stat ion_buffer_create ion_buffer_destroy "
	    "ion_heap_grow ion_heap_shrink kfree kmalloc kmalloc_node "
	    "kmem_cache_alloc kmem_cache_alloc_node kmem_cache_free "
	    "mm_alloc_contig_migrate_range_info mm_page_alloc "
	    "mm_page_alloc_extfrag mm_page_alloc_zone_locked "
	    "mm_page_free mm_page_free_batched mm_page_pcpu_drain "
	    "rss_stat" },
	{ "kvm",
	    "kvm_access_fault kvm_ack_irq kvm_age_hva kvm_age_page "
	    "kvm_arm_clear_debug kvm_arm_set_dreg32 "
	    "kvm_arm_set_regset kvm_arm_setup_debug kvm_entry "
	    "kvm_exit kvm_fpu kvm_get_timer_map kvm_guest_fault "
	    "kvm_handle_sys_reg kvm_hvc_arm64 kvm_irq_line kvm_mmio "
	    "kvm_mmio_emulate kvm_set_guest_debug kvm_set_irq "
	    "kvm_set_spte_hva kvm_set_way_flush kvm_sys_access "
	    "kvm_test_age_hva kvm_timer_emulate "
	    "kvm_timer_hrtimer_expire kvm_timer_restore_state "
	    "kvm_timer_save_state kvm_timer_update_irq "
	    "kvm_toggle_cache kvm_unmap_hva_range kvm_userspace_exit "
	    "kvm_vcpu_wakeup kvm_wfx_arm64 trap_reg "
	    "vgic_update_irq_pending" },
	{ "net",
	    "napi_gro_receive_entry napi_gro_receive_exit "
	    "net_dev_xmit netif_receive_skb" },
	{ "oom",
	    "mark_victim oom_score_adj_update" },
	{ "power",
	    "clock_disable clock_enable clock_set_rate cpu_frequency "
	    "cpu_frequency_limits cpu_idle device_pm_callback_end "
	    "device_pm_callback_start gpu_frequency gpu_power_state "
	    "gpu_work_period suspend_resume wakeup_source_activate "
	    "wakeup_source_deactivate" },
	{ "printk",
	    "console" },
	{ "raw_syscalls",
	    "sys_enter sys_exit" },
	{ "regulator",
	    "regulator_disable regulator_disable_complete "
	    "regulator_enable regulator_enable_complete "
	    "regulator_enable_delay regulator_set_voltage "
	    "regulator_set_voltage_complete" },
	{ "rpm",
	    "rpm_status" },
	{ "sched",
	    "sched_blocked_reason sched_cpu_hotplug "
	    "sched_cpu_util_cfs sched_group_tracker "
	    "sched_migrate_task sched_pi_setprio sched_process_exec "
	    "sched_process_exit sched_process_fork sched_process_free "
	    "sched_process_hang sched_process_wait sched_switch "
	    "sched_wakeup sched_wakeup_new sched_wakeup_task_attr "
	    "sched_waking" },
	{ "scsi",
	    "scsi_dispatch_cmd_error scsi_dispatch_cmd_timeout "
	    "scsi_eh_wakeup" },
	{ "signal",
	    "signal_deliver signal_generate" },
	{ "skb",
	    "kfree_skb" },
	{ "smbus",
	    "smbus_read smbus_reply smbus_result smbus_write" },
	{ "sock",
	    "inet_sock_set_state" },
	{ "synthetic",
	    "rss_stat_throttled suspend_resume_minimal" },
	{ "task",
	    "task_newtask task_rename" },
	{ "tcp",
	    "tcp_retransmit_skb" },
	{ "thermal",
	    "cdev_update thermal_temperature" },
	{ "timer",
	    "hrtimer_cancel hrtimer_expire_entry hrtimer_expire_exit "
	    "hrtimer_start timer_cancel timer_expire_entry "
	    "timer_expire_exit timer_start" },
	{ "ufs",
	    "ufshcd_clk_gating ufshcd_command" },
	{ "v4l2",
	    "v4l2_dqbuf v4l2_qbuf vb2_v4l2_buf_done "
	    "vb2_v4l2_buf_queue vb2_v4l2_dqbuf vb2_v4l2_qbuf" },
	{ "virtio_gpu",
	    "virtio_gpu_cmd_queue virtio_gpu_cmd_response" },
	{ "vmscan",
	    "mm_shrink_slab_end mm_shrink_slab_start "
	    "mm_vmscan_direct_reclaim_begin "
	    "mm_vmscan_direct_reclaim_end mm_vmscan_kswapd_sleep "
	    "mm_vmscan_kswapd_wake mm_vmscan_memcg_reclaim_begin "
	    "mm_vmscan_memcg_reclaim_end" },
	{ "workqueue",
	    "workqueue_activate_work workqueue_execute_end "
	    "workqueue_execute_start workqueue_queue_work" },
};

const struct event_group *
event_groups(size_t *n)
{
	*n = sizeof(groups) / sizeof(groups[0]);
	return groups;
}
