"""Arrays survive JSON to the last bit."""

import json

import numpy as np
import pytest

from calibrant.recalibrate.array_encoding import decoded_array, decoded_bytes, encoded_array, encoded_bytes


@pytest.mark.parametrize("dtype", ["f4", "f8", ">f8", "i1", "i8", ">i4", "u2", "bool"])
def test_arrays_come_back_to_the_last_bit(dtype):
    array = np.arange(6).reshape(2, 3).astype(dtype)
    back = decoded_array(json.loads(json.dumps(encoded_array(array))))
    np.testing.assert_array_equal(back, array)
    assert back.dtype == array.dtype.newbyteorder("=")
    back[0] = 1  # it is an array of its own


def test_other_types_and_other_text_are_refused():
    with pytest.raises(ValueError, match="no arrays of type"):
        decoded_array({"__array__": "|O", "shape": [1], "base64": ""})
    with pytest.raises(ValueError, match="no arrays of type"):
        decoded_array({"__array__": "f8,f8", "shape": [1], "base64": ""})
    with pytest.raises(ValueError, match="not valid base64"):
        decoded_bytes("?")
    with pytest.raises(ValueError, match="reshape"):
        decoded_array({"__array__": "|i1", "shape": [10**9], "base64": "AQI="})
    assert decoded_bytes(encoded_bytes(b"trees")) == b"trees"
