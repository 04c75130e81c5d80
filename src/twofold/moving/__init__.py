"""Moving records out of a store and in again: a text format of lines, read and written as a stream."""

from twofold.moving.exporting import export_records
from twofold.moving.importing import Existing, Import, import_records

__all__ = ["Existing", "Import", "export_records", "import_records"]
