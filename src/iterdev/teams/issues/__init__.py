"""The issue team: it explores issues, plans and audits their solutions, orders them, and builds them."""
