"""The packets inside of compressed ones.  Python 3.11 has zlib; zstd comes from
the library that the daemon links."""

import ctypes
import zlib

_SIZE_UNKNOWN = 2**64 - 1  # of a frame; the next smaller one: no frame

_zstd = None


def _library():
    global _zstd
    if _zstd is None:
        _zstd = ctypes.CDLL("libzstd.so.1")
        _zstd.ZSTD_getFrameContentSize.restype = ctypes.c_ulonglong
        _zstd.ZSTD_decompress.restype = ctypes.c_size_t
        _zstd.ZSTD_isError.restype = ctypes.c_uint
        _zstd.ZSTD_isError.argtypes = [ctypes.c_size_t]
    return _zstd


def unzstd(data):
    """One frame that says how large it was."""
    library = _library()
    size = library.ZSTD_getFrameContentSize(data, ctypes.c_size_t(len(data)))
    if size >= _SIZE_UNKNOWN - 1:
        raise ValueError("no zstd frame with its size")
    out = ctypes.create_string_buffer(size)
    got = library.ZSTD_decompress(out, ctypes.c_size_t(size), data,
                                  ctypes.c_size_t(len(data)))
    if library.ZSTD_isError(got) or got != size:
        raise ValueError("a damaged zstd frame")
    return out.raw[:got]


def inflate(data):
    """A zlib stream, and nothing behind it."""
    stream = zlib.decompressobj()
    out = stream.decompress(data)
    if not stream.eof or stream.unused_data:
        raise ValueError("no whole zlib stream")
    return out
