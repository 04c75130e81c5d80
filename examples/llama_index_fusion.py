"""LlamaIndex's fusion of twofold with another retriever: one list, in which each node is known from both sides."""

from __future__ import annotations

from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import TextNode

from llama_index.embeddings.twofold import NoEmbedding
from llama_index.retrievers.twofold import TwofoldRetriever
from llama_index.vector_stores.twofold import TwofoldVectorStore

NODES = [
    TextNode(id_="vault", text="The deploy key lives in the vault.", metadata={"page": 12}),
    TextNode(id_="friday", text="Deployments run every Friday at noon.", metadata={"page": 30}),
    TextNode(id_="tea", text="Anna prefers tea to coffee.", metadata={"page": 31}),
]

# The other retriever: LlamaIndex's own vector index, in memory. Its model is a mock: to it all texts are equally near.
other = VectorStoreIndex(NODES, embed_model=MockEmbedding(embed_dim=8)).as_retriever(similarity_top_k=3)

with TwofoldVectorStore("fusion.db", embed_model="local") as vector_store:
    VectorStoreIndex.from_vector_store(vector_store, embed_model=NoEmbedding()).insert_nodes(NODES)  # the store embeds
    ours = TwofoldRetriever.over(
        vector_store,
        similarity_top_k=3,
        use_bundle_embedding=False,  # the other retriever writes its model's embedding into the shared question
    )
    fusion = QueryFusionRetriever(
        [ours, other],
        llm=MockLLM(),  # asked for nothing with num_queries=1, but LlamaIndex wants one
        num_queries=1,
        mode="reciprocal_rerank",
        similarity_top_k=3,
        use_async=False,
    )
    found = fusion.retrieve("where is the deploy key?")
    for node in found:
        print(f"{node.score:.3f}  {node.text}")
    assert found[0].node_id == "vault"
    assert len(found) == len(NODES)  # each once: equal text and metadata are one node to LlamaIndex
