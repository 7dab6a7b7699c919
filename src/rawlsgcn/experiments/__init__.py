"""Train, compare, tune and audit: results, saved models and audits."""
