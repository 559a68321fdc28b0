SELECT group_commit_insert(1, 'pgdyno');
