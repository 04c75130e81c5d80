"""twofold for LlamaIndex: the retriever.

::

    retriever = TwofoldRetriever(twofold.open("memory.db"), similarity_top_k=4)
    RetrieverQueryEngine.from_args(retriever, llm=llm).query("where is the deploy key?")
"""

from llama_index.retrievers.twofold.base import TwofoldRetriever
from llama_index.retrievers.twofold.events import TwofoldSearchEvent
from llama_index.retrievers.twofold.options import RetrieverOptions
from llama_index.retrievers.twofold.scores import Scores

__all__ = ["RetrieverOptions", "Scores", "TwofoldRetriever", "TwofoldSearchEvent"]
