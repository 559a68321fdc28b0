-- YCSB's one table: a key and ten fields of 100 characters.
CREATE TABLE usertable (
    ycsb_key text NOT NULL, field0 text, field1 text, field2 text, field3 text,
    field4 text, field5 text, field6 text, field7 text, field8 text, field9 text);
-- Numbers of inserted rows.
CREATE SEQUENCE usertable_number;

-- A field's 100 characters.
CREATE FUNCTION ycsb_value(seed bigint) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT md5(seed::text) || md5((seed + 1)::text) || md5((seed + 2)::text)
        || left(md5((seed + 3)::text), 4)
$$;
