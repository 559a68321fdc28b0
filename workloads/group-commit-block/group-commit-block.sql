BEGIN;
INSERT INTO group_commit_test (id, info) VALUES (1, 'pgdyno');
COMMIT;
