"""twofold for LlamaIndex: the vector store.

::

    vector_store = TwofoldVectorStore("notes.db", embed_model=embed_model)
    index = VectorStoreIndex.from_vector_store(vector_store, embed_model=NoEmbedding())  # the store embeds
    index.as_query_engine(vector_store_query_mode="hybrid").query("where is the deploy key?")
"""

from llama_index.vector_stores.twofold.base import TwofoldVectorStore
from llama_index.vector_stores.twofold.filters import as_filter
from llama_index.vector_stores.twofold.options import QueryOptions

__all__ = ["QueryOptions", "TwofoldVectorStore", "as_filter"]
