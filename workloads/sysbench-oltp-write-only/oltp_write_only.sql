-- Writes of one transaction. Of two that replace a row at a time, the second meets the row of the first:
-- it keeps that row, where sysbench tries its transaction again.
\set rows 10000 * :scale
\if :skip_trx = 0
BEGIN;
\endif
\if :index_updates >= 1
\set id case when :skew > 0 then random_zipfian(1, :rows, :skew) else random(1, :rows) end
UPDATE sbtest1 SET k = k + 1 WHERE id = :id;
\endif
\if :non_index_updates >= 1
\set id case when :skew > 0 then random_zipfian(1, :rows, :skew) else random(1, :rows) end
\set c1 random(10000000000, 99999999999)
\set c2 random(10000000000, 99999999999)
\set c3 random(10000000000, 99999999999)
\set c4 random(10000000000, 99999999999)
\set c5 random(10000000000, 99999999999)
\set c6 random(10000000000, 99999999999)
\set c7 random(10000000000, 99999999999)
\set c8 random(10000000000, 99999999999)
\set c9 random(10000000000, 99999999999)
\set c10 random(10000000000, 99999999999)
UPDATE sbtest1 SET c = concat_ws('-', :c1::bigint, :c2::bigint, :c3::bigint, :c4::bigint, :c5::bigint,
    :c6::bigint, :c7::bigint, :c8::bigint, :c9::bigint, :c10::bigint)
WHERE id = :id;
\endif
\if :delete_inserts >= 1
\set id case when :skew > 0 then random_zipfian(1, :rows, :skew) else random(1, :rows) end
\set k random(1, :rows)
\set c1 random(10000000000, 99999999999)
\set c2 random(10000000000, 99999999999)
\set c3 random(10000000000, 99999999999)
\set c4 random(10000000000, 99999999999)
\set c5 random(10000000000, 99999999999)
\set c6 random(10000000000, 99999999999)
\set c7 random(10000000000, 99999999999)
\set c8 random(10000000000, 99999999999)
\set c9 random(10000000000, 99999999999)
\set c10 random(10000000000, 99999999999)
\set p1 random(10000000000, 99999999999)
\set p2 random(10000000000, 99999999999)
\set p3 random(10000000000, 99999999999)
\set p4 random(10000000000, 99999999999)
\set p5 random(10000000000, 99999999999)
DELETE FROM sbtest1 WHERE id = :id;
INSERT INTO sbtest1 (id, k, c, pad) VALUES (:id, :k, concat_ws('-', :c1::bigint, :c2::bigint, :c3::bigint, :c4::bigint, :c5::bigint,
    :c6::bigint, :c7::bigint, :c8::bigint, :c9::bigint, :c10::bigint),
    concat_ws('-', :p1::bigint, :p2::bigint, :p3::bigint, :p4::bigint, :p5::bigint))
ON CONFLICT (id) DO NOTHING;
\endif
\if :skip_trx = 0
COMMIT;
\endif
