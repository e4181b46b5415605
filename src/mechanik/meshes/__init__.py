"""Files of triangles, and what lies beside them."""
