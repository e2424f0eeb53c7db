-- Run once by the postgres image, as its superuser, when its volume is new: two owners, two databases.
-- Neither may connect to the other's.
\getenv airflow_password AIRFLOW_DB_PASSWORD
\getenv metastore_password METASTORE_PASSWORD
CREATE ROLE airflow LOGIN PASSWORD :'airflow_password';
CREATE ROLE drawdown LOGIN PASSWORD :'metastore_password';
CREATE DATABASE airflow OWNER airflow;
CREATE DATABASE drawdown OWNER drawdown;
REVOKE CONNECT ON DATABASE airflow, drawdown FROM PUBLIC;
