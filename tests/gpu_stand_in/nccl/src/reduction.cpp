// SPDX-License-Identifier: Apache-2.0
#include "reduction.hpp"

#include <algorithm>

#include "triax/half.hpp"

namespace triax::gpu_stand_in {

namespace {

template <class T>
T combine(T a, T b, ncclRedOp_t reduction) {
  switch (reduction) {
    case ncclSum:
      return static_cast<T>(a + b);
    case ncclProd:
      return static_cast<T>(a * b);
    case ncclMax:
      return std::max(a, b);
    default:
      return std::min(a, b);
  }
}

template <class T>
void reduce_as(void* into, const void* from, std::size_t count, ncclRedOp_t reduction) {
  auto* a = static_cast<T*>(into);
  const auto* b = static_cast<const T*>(from);
  for (std::size_t n = 0; n < count; ++n) a[n] = combine(a[n], b[n], reduction);
}

// T: F16 or Bf16; each addition is rounded.
template <class T>
void reduce_16(void* into, const void* from, std::size_t count, ncclRedOp_t reduction) {
  auto* a = static_cast<T*>(into);
  const auto* b = static_cast<const T*>(from);
  for (std::size_t n = 0; n < count; ++n)
    a[n] = T(combine(static_cast<float>(a[n]), static_cast<float>(b[n]), reduction));
}

} // namespace

std::size_t bytes_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    default:
      return 0;
  }
}

const char* name_of(ncclDataType_t type) {
  constexpr const char* kNames[] = {"int8",   "uint8",   "int32",   "uint32",  "int64",
                                    "uint64", "float16", "float32", "float64", "bfloat16"};
  return bytes_of(type) > 0 ? kNames[type] : "unknown type";
}

bool is_known(ncclRedOp_t reduction) {
  return reduction == ncclSum || reduction == ncclProd || reduction == ncclMax || reduction == ncclMin;
}

void reduce(void* into, const void* from, std::size_t count, ncclDataType_t type, ncclRedOp_t reduction) {
  switch (type) {
    case ncclInt8:
      return reduce_as<std::int8_t>(into, from, count, reduction);
    case ncclUint8:
      return reduce_as<std::uint8_t>(into, from, count, reduction);
    case ncclInt32:
      return reduce_as<std::int32_t>(into, from, count, reduction);
    case ncclUint32:
      return reduce_as<std::uint32_t>(into, from, count, reduction);
    case ncclInt64:
      return reduce_as<std::int64_t>(into, from, count, reduction);
    case ncclUint64:
      return reduce_as<std::uint64_t>(into, from, count, reduction);
    case ncclFloat32:
      return reduce_as<float>(into, from, count, reduction);
    case ncclFloat64:
      return reduce_as<double>(into, from, count, reduction);
    case ncclFloat16:
      return reduce_16<F16>(into, from, count, reduction);
    default: // ncclBfloat16: other types were refused
      return reduce_16<Bf16>(into, from, count, reduction);
  }
}

} // namespace triax::gpu_stand_in
