"""The lake: sessions, calls and digests as Parquet files on disk or in a bucket, for more than one machine can hold."""
