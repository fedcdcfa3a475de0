// SPDX-License-Identifier: Apache-2.0
// Data movement of the fake's calls, with NCCL's meaning of counts.
#include "fake_kernels.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "support/fake_cuda_device.hpp"
#include "triax/half.hpp"

namespace triax::test::fake {

namespace {

using Bytes = std::vector<std::byte>;

const char* name_of(ncclDataType_t type) {
  switch (type) {
    case ncclFloat32:
      return "f32";
    case ncclFloat64:
      return "f64";
    case ncclBfloat16:
      return "bf16";
    case ncclFloat16:
      return "f16";
    case ncclInt32:
      return "i32";
    case ncclInt64:
      return "i64";
    default:
      return "u8";
  }
}

const char* name_of(Call::Kind kind) {
  switch (kind) {
    case Call::Kind::all_reduce:
      return "all_reduce";
    case Call::Kind::reduce_scatter:
      return "reduce_scatter";
    case Call::Kind::all_gather:
      return "all_gather";
    case Call::Kind::broadcast:
      return "broadcast";
    case Call::Kind::send:
      return "send";
    case Call::Kind::recv:
      return "receive";
  }
  return "?";
}

Bytes read(const void* from, std::size_t bytes) {
  const auto* data = static_cast<const std::byte*>(host_alias(const_cast<void*>(from)));
  return {data, data + bytes};
}

void write(void* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(host_alias(to), from, bytes);
}

/// Adds in the order of the members, 16-bit types in fp32, so that tests can compute the sums. NCCL's order differs.
template <class T, class Sum>
Bytes reduced(const std::vector<Bytes>& inputs, ncclRedOp_t reduce) {
  Bytes out(inputs.front().size());
  for (std::size_t at = 0; at < out.size(); at += sizeof(T)) {
    const auto value = [&](std::size_t member) {
      T one;
      std::memcpy(&one, inputs[member].data() + at, sizeof one);
      return static_cast<Sum>(one);
    };
    Sum sum = value(0);
    for (std::size_t member = 1; member < inputs.size(); ++member)
      sum = reduce == ncclSum ? sum + value(member) : std::max(sum, value(member));
    const T stored = T(sum);
    std::memcpy(out.data() + at, &stored, sizeof stored);
  }
  return out;
}

Bytes reduced(const std::vector<Bytes>& inputs, ncclDataType_t type, ncclRedOp_t reduce) {
  switch (type) {
    case ncclFloat32:
      return reduced<float, float>(inputs, reduce);
    case ncclFloat64:
      return reduced<double, double>(inputs, reduce);
    case ncclBfloat16:
      return reduced<Bf16, float>(inputs, reduce);
    case ncclFloat16:
      return reduced<F16, float>(inputs, reduce);
    case ncclInt32:
      return reduced<std::int32_t, std::int32_t>(inputs, reduce);
    default:
      return reduced<std::int64_t, std::int64_t>(inputs, reduce);
  }
}

} // namespace

std::size_t width_of(ncclDataType_t type) {
  switch (type) {
    case ncclFloat64:
    case ncclInt64:
      return 8;
    case ncclFloat32:
    case ncclInt32:
      return 4;
    case ncclBfloat16:
    case ncclFloat16:
      return 2;
    default:
      return 1;
  }
}

std::string text_of(const Call& call) {
  std::string out = text("{} of {} {}", name_of(call.kind), call.count, name_of(call.type));
  if (call.kind == Call::Kind::all_reduce || call.kind == Call::Kind::reduce_scatter)
    out += call.reduce == ncclSum ? " (sum)" : " (max)";
  if (call.kind == Call::Kind::broadcast) out += text(" from member {}", call.peer);
  return out;
}

void run_collective(const std::vector<std::shared_ptr<Call>>& calls) {
  const Call& first = *calls.front();
  const std::size_t members = calls.size(), part = first.count * width_of(first.type);
  std::vector<Bytes> inputs; // read all first: calls may be in place
  for (const auto& call : calls)
    inputs.push_back(read(call->in, first.kind == Call::Kind::reduce_scatter ? part * members : part));
  switch (first.kind) {
    case Call::Kind::all_reduce: {
      const Bytes sum = reduced(inputs, first.type, first.reduce);
      for (const auto& call : calls) write(call->out, sum.data(), part);
      return;
    }
    case Call::Kind::reduce_scatter: {
      const Bytes sum = reduced(inputs, first.type, first.reduce);
      for (std::size_t member = 0; member < members; ++member)
        write(calls[member]->out, sum.data() + member * part, part);
      return;
    }
    case Call::Kind::all_gather:
      for (const auto& call : calls)
        for (std::size_t member = 0; member < members; ++member)
          write(static_cast<std::byte*>(call->out) + member * part, inputs[member].data(), part);
      return;
    default:
      for (const auto& call : calls) write(call->out, inputs[static_cast<std::size_t>(first.peer)].data(), part);
  }
}

void run_transfer(const Call& send, const Call& recv) {
  const Bytes data = read(send.in, send.count * width_of(send.type));
  write(recv.out, data.data(), data.size());
}

} // namespace triax::test::fake
