"""twofold for LlamaIndex: a vector store's file as the document store beside it.

::

    vector_store = TwofoldVectorStore("notes.db", embed_model=embed_model)
    storage = StorageContext.from_defaults(vector_store=vector_store, docstore=TwofoldDocumentStore(vector_store))
    index = VectorStoreIndex(nodes=[], storage_context=storage, embed_model=NoEmbedding())
    index.refresh_ref_docs(documents)  # in any process, as often as you like
"""

from llama_index.storage.docstore.twofold.base import TwofoldDocumentStore

__all__ = ["TwofoldDocumentStore"]
