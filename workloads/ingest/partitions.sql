-- The number of the partition that a time lies in: from 0, each of a thousand seconds.
CREATE OR REPLACE FUNCTION readings_number(at timestamptz) RETURNS bigint LANGUAGE sql STABLE AS
$$ SELECT floor(EXTRACT(epoch FROM at - timestamptz '2026-01-01 00:00:00+00') / 1000)::bigint $$;

-- The partitions that there are.
CREATE OR REPLACE FUNCTION readings_partitions() RETURNS TABLE (partition regclass, number bigint)
LANGUAGE sql STABLE AS $$
    SELECT c.oid::regclass, substring(c.relname FROM '[0-9]+$')::bigint
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'readings'::regclass
$$;

-- Makes the partitions of these numbers that are missing. A table is made first and attached then:
-- those who write to `readings` need not wait.
CREATE OR REPLACE FUNCTION readings_extend(first bigint, last bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    missing bigint;
    began timestamptz;
BEGIN
    FOR missing IN
        SELECT n FROM generate_series(first, last) AS n
        EXCEPT SELECT number FROM readings_partitions() ORDER BY 1
    LOOP
        began := timestamptz '2026-01-01 00:00:00+00' + missing * interval '1000 s';
        EXECUTE format('CREATE TABLE %I (LIKE readings)', 'readings_' || missing);
        EXECUTE format(
            'ALTER TABLE readings ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
            'readings_' || missing, began, began + interval '1000 s');
    END LOOP;
END $$;

-- Makes ten partitions ahead of the newest reading, and drops those that are more than `kept` behind
-- it. Dropping one waits for all who write to `readings`, and they wait for it.
CREATE OR REPLACE FUNCTION readings_keep(kept bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    newest bigint;
    old regclass;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('readings_keep'));
    SELECT coalesce(readings_number(max(time)), 0) INTO newest FROM readings;
    PERFORM readings_extend(newest, newest + 10);
    FOR old IN
        SELECT partition FROM readings_partitions() WHERE number <= newest - kept ORDER BY number
    LOOP
        EXECUTE format('DROP TABLE %s', old);
    END LOOP;
END $$;

SELECT readings_extend(0, current_setting('pgdyno.scale')::bigint + 10);
