"""A LlamaIndex query engine over a store, with a mock language model: no network, no key."""

from __future__ import annotations

from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine

import twofold
from llama_index.retrievers.twofold import TwofoldRetriever

with twofold.open("engine.db", embedder="local") as store:
    store.add("The deploy key lives in the vault.", id="vault", metadata={"page": 12})
    store.add("Deployments run every Friday at noon.", id="friday", metadata={"page": 30})
    store.add("Anna prefers tea to coffee.", id="tea", metadata={"page": 31})

    engine = RetrieverQueryEngine.from_args(TwofoldRetriever(store, similarity_top_k=2), llm=MockLLM())
    answer = engine.query("where is the deploy key?")

    print("The engine's sources, best first:")
    for node in answer.source_nodes:
        print(f"  {node.score:.2f}  {node.text}  {node.metadata}")
    print("What reaches the model, which only echoes it:\n")
    print(answer)
    assert answer.source_nodes[0].node_id == "vault"
