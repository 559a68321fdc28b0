\set userid random(1, 100000 * :scale)
\set aid :userid
\set tid 0
\set bid 0
\set delta 1
BEGIN;
SELECT f_user_login(:userid);
INSERT INTO pgdyno_token (client, sequence, aid, tid, bid, delta) VALUES (:client_id, :sequence, :aid, :tid, :bid, :delta);
END;
