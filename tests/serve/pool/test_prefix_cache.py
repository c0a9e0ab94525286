"""What servers count of their prefix caches, read from the text that vLLM 0.32 serves."""

from wire_server import Wire, serving

from medexam.serve.pool.prefix_cache import PrefixCount, count_prefixes

METRICS = """\
# HELP vllm:prefix_cache_queries_total Prefix cache queries, in terms of number of queried tokens.
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{engine="0",model_name="tiny"} 1200.0
vllm:prefix_cache_queries_total{engine="1",model_name="tiny"} 800.0
vllm:prefix_cache_queries_created{engine="0",model_name="tiny"} 1.7e+09
vllm:prefix_cache_hits_total{engine="0",model_name="tiny"} 1.5e+03
vllm:external_prefix_cache_hits_total{engine="0",model_name="tiny"} 7.0
"""


async def test_the_counts_of_all_engines_and_servers_are_added() -> None:
    with serving(Wire(metrics=METRICS)) as one, serving(Wire(metrics=METRICS)) as other:
        assert await count_prefixes([one.address]) == PrefixCount(tokens=2000, hits=1500)
        assert await count_prefixes([one.address, other.address]) == PrefixCount(tokens=4000, hits=3000)


async def test_a_server_that_does_not_tell_leaves_the_count_unknown() -> None:
    with serving(Wire(metrics=METRICS)) as one, serving(Wire()) as silent, serving(Wire(metrics="up 1\n")) as other:
        assert await count_prefixes([one.address, silent.address]) is None
        assert await count_prefixes([other.address]) is None
    assert await count_prefixes([one.address]) is None
    assert await count_prefixes([]) is None
