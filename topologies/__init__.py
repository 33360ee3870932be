"""Pure graph builders: named, random and given graphs as edge arrays, mixing weights, figures."""
