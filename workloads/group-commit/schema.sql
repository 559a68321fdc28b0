CREATE TABLE group_commit_test (id int, info text);

CREATE OR REPLACE FUNCTION group_commit_insert(i_id int, i_info text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO group_commit_test (id, info) VALUES (i_id, i_info);
END;
$$;
