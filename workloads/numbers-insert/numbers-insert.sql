\set operator random(1, 100)
\set region random(1, 100)
INSERT INTO numbers (operator, region) VALUES (:operator, :region);
