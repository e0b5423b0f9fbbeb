\echo Use "ALTER EXTENSION graph_kernel UPDATE TO '0.3.0'" to load this file. \quit

SELECT graph_kernel.require_library();
