CREATE TABLE numbers (number bigserial NOT NULL, operator smallint, region smallint);
