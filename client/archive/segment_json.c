#include "client/archive/segment_json.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/archive/archive_path.h"
#include "client/archive/catalog.h"
#include "client/archive/catalog_internal.h"
#include "client/archive/segment_entry.h"
#include "transport/base/failure.h"

/* The tables as JSON; "tributary" is the version of the description. */
static const char write_sql[] =
    "SELECT json_object('tributary', 1, 'path', s.path, 'bytes', s.bytes,"
    " 'mtime_ns', s.mtime_ns, 'sha256', lower(hex(s.sha256)),"
    " 'verdict', s.verdict, 'problem', s.problem,"
    " 'uuid', lower(hex(s.uuid)),"
    " 'recording_uuid', lower(hex(s.recording_uuid)),"
    " 'recording', s.recording, 'number', s.number, 'cause', s.cause,"
    " 'end_cause', s.end_cause, 'is_last', s.is_last,"
    " 'unanswered', s.unanswered, 'machine', s.machine,"
    " 'packets', s.packets, 'lost', s.lost, 'first_ns', s.first_ns,"
    " 'last_ns', s.last_ns, 'first_boot_ns', s.first_boot_ns,"
    " 'last_boot_ns', s.last_boot_ns,"
    " 'machines', (SELECT json_group_array(json_object('id', id,"
    "   'name', name, 'packets', packets, 'bytes', bytes,"
    "   'first_ns', first_ns, 'last_ns', last_ns))"
    "   FROM machines WHERE segment = s.id),"
    " 'losses', (SELECT json_group_array(json_object('position', position,"
    "   'text', text, 'cause', cause, 'unit', unit, 'place', place,"
    "   'count', count, 'bytes', bytes, 'buffer', buffer,"
    "   'machine_id', machine_id, 'at_least', at_least))"
    "   FROM losses WHERE segment = s.id),"
    " 'triggers', (SELECT json_group_array(json_object("
    "   'position', position, 'name', name, 'producer', producer,"
    "   'machine_id', machine_id, 'at_ns', at_ns, 'begun_by', begun_by))"
    "   FROM triggers WHERE segment = s.id),"
    " 'data_sources', (SELECT json_group_array(name)"
    "   FROM data_sources WHERE segment = s.id),"
    " 'processes', (SELECT json_group_array(json_object('name', p.name,"
    "   'machine', p.machine, 'pid', p.pid))"
    "   FROM seen JOIN processes AS p ON p.id = seen.process"
    "   WHERE seen.segment = s.id))"
    " FROM segments AS s WHERE s.id = ?";

char *
segment_json_write(struct catalog *c, int64_t id, char *err, size_t err_size)
{
	const struct catalog_value value = CATALOG_INT(id);
	struct catalog_statement *s = catalog_prepare(c, write_sql, err, err_size);
	char *line = NULL;
	int rc;

	if (s == NULL || catalog_bind(c, s, &value, 1, err, err_size) != 0)
		return NULL;
	if ((rc = catalog_step(c, s, err, err_size)) < 0)
		return NULL;
	if (rc == 0) {
		snprintf(err, err_size, "it is not in the catalogue any more");
		return NULL;
	}
	line = strdup(catalog_text(s, 0));
	catalog_reset(s);
	if (line == NULL)
		snprintf(err, err_size, "no memory");
	return line;
}

/* ---- the way back ---- */

/* ?1: the line; the others: of catalog_stored. */
static const char put_segment_sql[] =
    "INSERT INTO segments (path, bytes, mtime_ns, sha256, verdict, problem,"
    " uuid, recording_uuid, recording, number, cause, end_cause, is_last,"
    " unanswered, machine, packets, lost, first_ns, last_ns, first_boot_ns,"
    " last_boot_ns, class, pinned, local, stored_state, stored_url,"
    " stored_etag, stored_ns)"
    " SELECT j->>'path', j->>'bytes', j->>'mtime_ns',"
    " tributary_unhex(j->>'sha256', 32), j->>'verdict', j->>'problem',"
    " tributary_unhex(j->>'uuid', 16),"
    " tributary_unhex(j->>'recording_uuid', 16), j->>'recording',"
    " j->>'number', j->>'cause', j->>'end_cause', j->>'is_last',"
    " j->>'unanswered', j->>'machine', j->>'packets', j->>'lost',"
    " j->>'first_ns', j->>'last_ns', j->>'first_boot_ns',"
    " j->>'last_boot_ns',"
    " tributary_span_class(j->>'first_ns', j->>'last_ns'), 0, 0, ?2, ?3, ?4,"
    " ?5 FROM (SELECT ?1 AS j) RETURNING id";

/* ?1: the line, ?2: the row's id. */
static const char *const put_lists_sql[] = {
	"INSERT INTO machines (segment, id, name, packets, bytes, first_ns,"
	" last_ns) SELECT ?2, value->>'id', value->>'name',"
	" value->>'packets', value->>'bytes', value->>'first_ns',"
	" value->>'last_ns' FROM json_each(?1, '$.machines')",
	"INSERT INTO losses (segment, position, text, cause, unit, place,"
	" count, bytes, buffer, machine_id, at_least) SELECT ?2,"
	" value->>'position', value->>'text', value->>'cause',"
	" value->>'unit', value->>'place', value->>'count',"
	" value->>'bytes', value->>'buffer', value->>'machine_id',"
	" value->>'at_least' FROM json_each(?1, '$.losses')",
	"INSERT INTO triggers (segment, position, name, producer, machine_id,"
	" at_ns, begun_by) SELECT ?2, value->>'position', value->>'name',"
	" value->>'producer', value->>'machine_id', value->>'at_ns',"
	" value->>'begun_by' FROM json_each(?1, '$.triggers')",
	"INSERT INTO data_sources (segment, name)"
	" SELECT ?2, value FROM json_each(?1, '$.data_sources')",
	"INSERT OR IGNORE INTO processes (name, machine, pid)"
	" SELECT value->>'name', value->>'machine', value->>'pid'"
	" FROM json_each(?1, '$.processes')",
	"INSERT INTO seen (segment, process) SELECT ?2, p.id"
	" FROM json_each(?1, '$.processes') AS e JOIN processes AS p"
	" ON p.name = e.value->>'name' AND p.machine = e.value->>'machine'"
	" AND p.pid = e.value->>'pid'",
	"UPDATE processes SET segments = segments + 1"
	" WHERE id IN (SELECT process FROM seen WHERE segment = ?2)",
};

/* *id: of a row that the statement returns. */
static int
run(struct catalog *c, const char *sql, const struct catalog_value *values,
    size_t n, int64_t *id, char *err, size_t err_size)
{
	struct catalog_statement *s = catalog_prepare(c, sql, err, err_size);
	int rc;

	if (s == NULL)
		return -1;
	/* Not each statement needs the row's id. */
	if (strstr(sql, "?2") == NULL)
		n = 1;
	if (catalog_bind(c, s, values, n, err, err_size) != 0)
		return -1;
	if ((rc = catalog_step(c, s, err, err_size)) == 1) {
		*id = catalog_int(s, 0);
		catalog_reset(s);
	}
	return rc < 0 ? -1 : 0;
}

static int
add(struct catalog *c, const char *line, const struct catalog_stored *stored,
    char *err, size_t err_size)
{
	struct catalog_value values[5] = {
		CATALOG_STR(line), CATALOG_STR(stored->state),
		CATALOG_STR(stored->url), CATALOG_STR(stored->etag),
		CATALOG_INT(stored->at_ns),
	};
	int64_t id = 0;
	size_t i;

	if (catalog_begin(c, err, err_size) != 0)
		return -1;
	if (run(c, put_segment_sql, values, 5, &id, err, err_size) != 0)
		goto fail;
	values[1] = CATALOG_INT(id);
	for (i = 0; i < sizeof(put_lists_sql) / sizeof(put_lists_sql[0]); i++)
		if (run(c, put_lists_sql[i], values, 2, &id, err,
			err_size) != 0)
			goto fail;
	if (catalog_put_terms(c, values[1].integer, err, err_size) != 0)
		goto fail;
	if (catalog_commit(c, err, err_size) == 0)
		return 0;
fail:
	catalog_rollback(c);
	return -1;
}

struct known {
	const uint8_t *sha256; /* of the line, while its row is looked for */
	int64_t id;
	bool is_same;
};

static bool
known_cb(void *arg, const struct catalog_row *row)
{
	struct known *k = arg;

	k->id = row->id;
	k->is_same = memcmp(row->sha256, k->sha256, SEGMENT_SHA256) == 0;
	return false;
}

/* 1: there is a row of this path, in *k; 0: none; -1 with a sentence. */
static int
look(struct catalog *c, const char *line, struct known *k, char *err,
    size_t err_size)
{
	const struct catalog_value value = CATALOG_STR(line);
	struct catalog_statement *s = catalog_prepare(c, "SELECT j->>'path',"
	    " tributary_unhex(j->>'sha256', 32) FROM (SELECT ?1 AS j)"
	    " WHERE json_valid(j) AND j->>'tributary' = 1", err, err_size);
	uint8_t sha256[SEGMENT_SHA256];
	const void *bytes;
	char *path = NULL;
	size_t len;
	int rc;

	if (s == NULL || catalog_bind(c, s, &value, 1, err, err_size) != 0 ||
	    (rc = catalog_step(c, s, err, err_size)) < 0)
		return -1;
	if (rc > 0 && (bytes = catalog_blob(s, 1, &len)) != NULL &&
	    len == SEGMENT_SHA256 && catalog_text(s, 0) != NULL) {
		memcpy(sha256, bytes, sizeof(sha256));
		path = strdup(catalog_text(s, 0));
	}
	catalog_reset(s);
	if (path == NULL || !archive_path_is_segment(path)) {
		free(path);
		return FAILURE(err, err_size, "it describes no segment");
	}
	k->sha256 = sha256;
	rc = catalog_find(c, path, known_cb, k, err, err_size);
	k->sha256 = NULL;
	free(path);
	return rc;
}

enum segment_json_put
segment_json_put(struct catalog *c, const char *line,
    const struct catalog_stored *stored, char *err, size_t err_size)
{
	struct known k = { 0 };
	int rc;

	if ((rc = look(c, line, &k, err, err_size)) < 0)
		return SEGMENT_JSON_FAILED;
	if (rc == 0)
		return add(c, line, stored, err, err_size) == 0 ?
		    SEGMENT_JSON_ADDED : SEGMENT_JSON_FAILED;
	if (!k.is_same)
		return SEGMENT_JSON_OTHER;
	return catalog_set_stored(c, k.id, stored, err, err_size) == 0 ?
	    SEGMENT_JSON_KNOWN : SEGMENT_JSON_FAILED;
}
