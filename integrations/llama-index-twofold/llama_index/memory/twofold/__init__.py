"""twofold for LlamaIndex: what a store remembers, as a chat's context.

::

    bundle = store.context("Shall I have tea or coffee?", access=ann, budget_tokens=2000)
    llm.chat(as_chat_messages(bundle))
"""

from llama_index.memory.twofold.messages import as_chat_messages

__all__ = ["as_chat_messages"]
