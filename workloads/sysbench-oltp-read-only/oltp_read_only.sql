-- Reads of one transaction: points, then ranges.
\set rows 10000 * :scale
\if :skip_trx = 0
BEGIN;
\endif
\if :point_selects >= 1
\set id case when :skew > 0 then random_zipfian(1, :rows, :skew) else random(1, :rows) end
SELECT c FROM sbtest1 WHERE id = :id;
\endif
\if :point_selects >= 2
\set id case when :skew > 0 then random_zipfian(1, :rows, :skew) else random(1, :rows) end
SELECT c FROM sbtest1 WHERE id = :id;
\endif
\if :point_selects >= 3
\set id case when :skew > 0 then random_zipfian(1, :rows, :skew) else random(1, :rows) end
SELECT c FROM sbtest1 WHERE id = :id;
\endif
\if :point_selects >= 4
\set id case when :skew > 0 then random_zipfian(1, :rows, :skew) else random(1, :rows) end
SELECT c FROM sbtest1 WHERE id = :id;
\endif
\if :point_selects >= 5
\set id case when :skew > 0 then random_zipfian(1, :rows, :skew) else random(1, :rows) end
SELECT c FROM sbtest1 WHERE id = :id;
\endif
\if :point_selects >= 6
\set id case when :skew > 0 then random_zipfian(1, :rows, :skew) else random(1, :rows) end
SELECT c FROM sbtest1 WHERE id = :id;
\endif
\if :point_selects >= 7
\set id case when :skew > 0 then random_zipfian(1, :rows, :skew) else random(1, :rows) end
SELECT c FROM sbtest1 WHERE id = :id;
\endif
\if :point_selects >= 8
\set id case when :skew > 0 then random_zipfian(1, :rows, :skew) else random(1, :rows) end
SELECT c FROM sbtest1 WHERE id = :id;
\endif
\if :point_selects >= 9
\set id case when :skew > 0 then random_zipfian(1, :rows, :skew) else random(1, :rows) end
SELECT c FROM sbtest1 WHERE id = :id;
\endif
\if :point_selects >= 10
\set id case when :skew > 0 then random_zipfian(1, :rows, :skew) else random(1, :rows) end
SELECT c FROM sbtest1 WHERE id = :id;
\endif
\if :simple_ranges >= 1
\set id case when :skew > 0 then random_zipfian(1, :rows, :skew) else random(1, :rows) end
\set last :id + :range_size - 1
SELECT c FROM sbtest1 WHERE id BETWEEN :id AND :last;
\endif
\if :sum_ranges >= 1
\set id case when :skew > 0 then random_zipfian(1, :rows, :skew) else random(1, :rows) end
\set last :id + :range_size - 1
SELECT sum(k) FROM sbtest1 WHERE id BETWEEN :id AND :last;
\endif
\if :order_ranges >= 1
\set id case when :skew > 0 then random_zipfian(1, :rows, :skew) else random(1, :rows) end
\set last :id + :range_size - 1
SELECT c FROM sbtest1 WHERE id BETWEEN :id AND :last ORDER BY c;
\endif
\if :distinct_ranges >= 1
\set id case when :skew > 0 then random_zipfian(1, :rows, :skew) else random(1, :rows) end
\set last :id + :range_size - 1
SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN :id AND :last ORDER BY c;
\endif
\if :skip_trx = 0
COMMIT;
\endif
