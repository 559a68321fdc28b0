CREATE TABLE group_commit_test (id int, info text);
