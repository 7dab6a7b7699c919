"""``rg.audit``: predictions matched with nodes, the nodes that count, and the result."""
