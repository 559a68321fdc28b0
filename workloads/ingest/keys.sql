CREATE INDEX ON readings (time);
CREATE INDEX ON readings (device, time);
