/*
 * protovm_tree: an ordered container of nodes, found by place or by key.
 *
 * A weight-balanced tree (Adams; with the parameters 3 and 2 of Hirai and
 * Yamamoto): every operation takes O(log n) whatever the keys are, which
 * producers choose.  Nodes belong to the state (protovm_state.h) and keep their
 * addresses.  A tree is the node at its top; NULL: empty.
 */
#ifndef SERVICE_PROTOVM_PROTOVM_TREE_H
#define SERVICE_PROTOVM_PROTOVM_TREE_H

#include <stdbool.h>
#include <stdint.h>

struct protovm_node;

uint32_t protovm_tree_count(const struct protovm_node *top);
/* The node at a place, which is below the count. */
struct protovm_node *protovm_tree_at(struct protovm_node *top, uint32_t place);
/*
 * For trees whose nodes are in the order of their keys: the place of the first
 * node whose key is not below `key`, and that node if its key is equal.
 */
struct protovm_node *protovm_tree_find(struct protovm_node *top, uint64_t key,
    uint32_t *place);
/* So that the node has that place; later ones move up. */
void protovm_tree_insert(struct protovm_node **top, uint32_t place,
    struct protovm_node *node);
struct protovm_node *protovm_tree_remove(struct protovm_node **top,
    uint32_t place);

#endif /* SERVICE_PROTOVM_PROTOVM_TREE_H */
