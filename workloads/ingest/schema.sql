CREATE TABLE readings (
    time timestamptz NOT NULL,
    device integer NOT NULL,
    temperature numeric(5, 2) NOT NULL,
    humidity numeric(4, 1) NOT NULL,
    voltage smallint,
    status text NOT NULL,
    note text NOT NULL
) PARTITION BY RANGE (time);
