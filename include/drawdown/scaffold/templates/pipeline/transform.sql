SELECT
  payment_id,
  paid_at,
  upper(country)                AS country,
  cast(amount AS DECIMAL(12,2)) AS amount
FROM payments
