SELECT setval('numbers_number_seq', (SELECT max(number) FROM numbers));
