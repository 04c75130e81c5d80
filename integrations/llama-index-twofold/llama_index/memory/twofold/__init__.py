"""twofold for LlamaIndex: an agent's memory, and what a store remembers as a chat's context.

::

    memory = twofold_memory("memory.db", access=Access(user="ann"), session_id="monday")
    await agent.run(user_msg="Shall I have tea or coffee?", memory=memory)
"""

from llama_index.memory.twofold.block import TwofoldMemoryBlock
from llama_index.memory.twofold.memory import BlockOptions, TwofoldMemory, twofold_memory
from llama_index.memory.twofold.messages import as_chat_messages

__all__ = ["BlockOptions", "TwofoldMemory", "TwofoldMemoryBlock", "as_chat_messages", "twofold_memory"]
