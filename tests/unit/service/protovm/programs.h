/*
 * programs: parts of programs in text form, to be put side by side.
 *
 * ELEMENTS is the program of Perfetto's own tests (src/protovm/test): the state
 * is { 1: elements { 1: id 2: value } }, and a patch is { 1: ids to delete
 * 2: elements to merge 3: elements to set 4: indices to delete
 * 5: { 1: element 2: index } to insert }.
 *
 * TEST_EVENTS merges TracePacket.for_testing.protovm_patch into a TracePacket
 * with for_testing.protovm_incremental_state.
 */
#ifndef TESTS_UNIT_SERVICE_PROTOVM_PROGRAMS_H
#define TESTS_UNIT_SERVICE_PROTOVM_PROGRAMS_H

#define SRC(path) "select { " path " } "
#define DST(path) "select { cursor: VM_CURSOR_DST " path " } "
#define MAKE(path) DST("create_if_not_exist: true " path)
#define FIELD(n) "relative_path { field_id: " #n " } "
#define EACH(n) "relative_path { field_id: " #n " is_repeated: true } "
#define KEY(n, reg)                                                           \
	"relative_path { map_key_field_id: " #n " register_to_match: " #reg " } "
#define INDEX(n) "relative_path { array_index: " #n " } "
#define INDEX_REG(reg) "relative_path { array_index_register: " #reg " } "
#define DO(what) "instructions { " what "} "
#define IN(what) "nested_instructions { " what "} "
#define LOAD(reg) "reg_load { dst_register: " #reg " } "
#define SKIP "abort_level: SKIP_CURRENT_INSTRUCTION "
#define ABORT "abort_level: ABORT "

#define BY_ID(what)                                                           \
	IN(SRC(FIELD(1)) IN(LOAD(0)))                                         \
	IN(MAKE(FIELD(1) KEY(1, 0)) IN(what))

#define ELEMENTS                                                              \
	DO(SRC(EACH(1)) IN(LOAD(0)) IN(DST(FIELD(1) KEY(1, 0)) IN("del {} "))) \
	DO(SRC(EACH(2)) BY_ID("merge {} "))                                   \
	DO(SRC(EACH(3)) BY_ID("set {} "))                                     \
	DO(SRC(EACH(4)) IN(LOAD(1))                                           \
	    IN(DST(FIELD(1) INDEX_REG(1)) IN("del {} ")))                     \
	DO(SRC(EACH(5)) IN(SRC(FIELD(2)) IN(LOAD(1)))                         \
	    IN(SRC(FIELD(1)) IN(MAKE(FIELD(1) INDEX_REG(1)) IN("insert {} "))))

#define TEST_EVENTS                                                            \
	DO(SRC(FIELD(900) FIELD(6)) IN(MAKE(FIELD(900) FIELD(7))              \
	    IN(SKIP SRC(FIELD(1)) IN(MAKE(FIELD(1)) IN("set {} ")))           \
	    IN(SKIP SRC(FIELD(2)) IN(MAKE(FIELD(2)) IN("set {} ")))           \
	    IN(SKIP SRC(FIELD(3)) IN(MAKE(FIELD(3))                           \
	        IN(SKIP SRC(FIELD(2)) IN(MAKE(FIELD(2)) IN(MERGE_DEL)))       \
	        IN("merge { skip_submessages: true del_if_src_empty: true } "))) \
	    IN(SRC(EACH(4)) IN(ABORT SRC(FIELD(1)) IN(LOAD(0)))               \
	        IN(MAKE(FIELD(4) KEY(1, 0)) IN(MERGE_DEL)))                   \
	    IN(SRC(EACH(5)) IN(LOAD(0))                                       \
	        IN(SKIP DST(FIELD(4) KEY(1, 0)) IN("del {} ")))))
#define MERGE_DEL "merge { del_if_src_empty: true } "

#endif /* TESTS_UNIT_SERVICE_PROTOVM_PROGRAMS_H */
