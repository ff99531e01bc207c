#include "service/protovm/protovm_tree.h"

#include <stddef.h>

#include "service/protovm/protovm_state.h"

/* No subtree weighs more than so many times its sibling. */
#define DELTA 3u
/* Below this ratio of the inner to the outer grandchild, one rotation does. */
#define GAMMA 2u

static inline uint32_t
count(const struct protovm_node *top)
{
	return top == NULL ? 0 : top->count;
}

uint32_t
protovm_tree_count(const struct protovm_node *top)
{
	return count(top);
}

static inline uint64_t
weight(const struct protovm_node *n)
{
	return (uint64_t)count(n) + 1;
}

static void
recount(struct protovm_node *n)
{
	n->count = 1 + count(n->left) + count(n->right);
}

static struct protovm_node *
rotate_left(struct protovm_node *n)
{
	struct protovm_node *up = n->right;

	n->right = up->left;
	up->left = n;
	recount(n);
	recount(up);
	return up;
}

static struct protovm_node *
rotate_right(struct protovm_node *n)
{
	struct protovm_node *up = n->left;

	n->left = up->right;
	up->right = n;
	recount(n);
	recount(up);
	return up;
}

/* After one node was added to, or taken from, either side. */
static inline struct protovm_node *
balance(struct protovm_node *n)
{
	uint64_t l = weight(n->left), r = weight(n->right);

	n->count = (uint32_t)(l + r - 1);
	if (r > DELTA * l) {
		if (weight(n->right->left) >= GAMMA * weight(n->right->right))
			n->right = rotate_right(n->right);
		return rotate_left(n);
	}
	if (l > DELTA * r) {
		if (weight(n->left->right) >= GAMMA * weight(n->left->left))
			n->left = rotate_left(n->left);
		return rotate_right(n);
	}
	return n;
}

struct protovm_node *
protovm_tree_at(struct protovm_node *top, uint32_t place)
{
	uint32_t left;

	for (;;) {
		left = count(top->left);
		if (place == left)
			return top;
		if (place < left) {
			top = top->left;
		} else {
			place -= left + 1;
			top = top->right;
		}
	}
}

struct protovm_node *
protovm_tree_find(struct protovm_node *top, uint64_t key, uint32_t *place)
{
	uint32_t before = 0;

	while (top != NULL) {
		if (key == top->key) {
			*place = before + count(top->left);
			return top;
		}
		if (key < top->key) {
			top = top->left;
		} else {
			before += count(top->left) + 1;
			top = top->right;
		}
	}
	*place = before;
	return NULL;
}

void
protovm_tree_insert(struct protovm_node **top, uint32_t place,
    struct protovm_node *node)
{
	struct protovm_node *n = *top;
	uint32_t left;

	if (n == NULL) {
		node->left = node->right = NULL;
		node->count = 1;
		*top = node;
		return;
	}
	left = count(n->left);
	if (place <= left)
		protovm_tree_insert(&n->left, place, node);
	else
		protovm_tree_insert(&n->right, place - left - 1, node);
	*top = balance(n);
}

/* Takes the first node out. */
static struct protovm_node *
remove_first(struct protovm_node **top)
{
	struct protovm_node *n = *top, *first;

	if (n->left == NULL) {
		*top = n->right;
		return n;
	}
	first = remove_first(&n->left);
	*top = balance(n);
	return first;
}

struct protovm_node *
protovm_tree_remove(struct protovm_node **top, uint32_t place)
{
	struct protovm_node *n = *top, *gone, *next;
	uint32_t left = count(n->left);

	if (place < left) {
		gone = protovm_tree_remove(&n->left, place);
	} else if (place > left) {
		gone = protovm_tree_remove(&n->right, place - left - 1);
	} else {
		if (n->right == NULL) {
			*top = n->left;
			return n;
		}
		next = remove_first(&n->right);
		next->left = n->left;
		next->right = n->right;
		*top = balance(next);
		return n;
	}
	*top = balance(n);
	return gone;
}
