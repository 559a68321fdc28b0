SELECT setval('usertable_number', greatest((SELECT count(*) FROM usertable), 1));
