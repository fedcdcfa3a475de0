// SPDX-License-Identifier: Apache-2.0
// NCCL calls: collectives, sends and receives, groups.
#include <algorithm>

#include "group.hpp"
#include "reduction.hpp"

namespace triax::gpu_stand_in {

namespace {

void check_buffer(const Communicator& c, const void* address, std::size_t bytes, const char* what) {
  if (bytes == 0) return;
  const auto found = find_memory(address);
  const bool reachable = found && (found->allocation.host || found->device == c.device);
  const auto at = reinterpret_cast<std::uint64_t>(address);
  if (reachable && bytes <= found->allocation.bytes - (at - found->allocation.address)) return;
  throw NcclError(ncclInvalidArgument, std::string(what) + ": " + std::to_string(bytes) +
                                           " bytes are not in one allocation of GPU " + std::to_string(c.device) +
                                           "; they begin at " + describe_memory(address));
}

CommunicatorPtr ready_communicator(ncclComm_t handle) {
  CommunicatorPtr c = find_communicator(handle);
  if (c->state != ncclSuccess || c->is_over()) {
    throw NcclError(ncclInvalidUsage, c->text() + " is not ready: it joins, or was aborted");
  }
  return c;
}

std::size_t width_of(ncclDataType_t type) {
  if (const std::size_t bytes = bytes_of(type)) return bytes;
  throw NcclError(ncclInvalidArgument, "the stand-in does not know type " + std::to_string(type));
}

std::string plus(std::uint64_t bytes) {
  return bytes == 0 ? "" : " + " + std::to_string(bytes) + " bytes";
}

struct Buffers {
  const void* input;
  void* output;
  std::size_t input_count, output_count; // elements
};

// Of buffers that overlap, NCCL defines only its in-place operations: sendbuff is recvbuff, or one of them is this
// rank's part of the other (NCCL user guide, "In-place Operations").
void check_overlap(const Request& r) {
  if (r.input_bytes == 0 || r.output_bytes == 0) return;
  const auto send = reinterpret_cast<std::uint64_t>(r.input), receive = reinterpret_cast<std::uint64_t>(r.output);
  if (send >= receive + r.output_bytes || receive >= send + r.input_bytes) return;
  const auto rank = static_cast<std::uint64_t>(r.communicator->rank);
  const auto kind = r.call.kind;
  const std::uint64_t part = rank * std::min(r.input_bytes, r.output_bytes);
  const std::uint64_t in_receive = kind == Collective::kAllGather ? part : 0,
                      in_send = kind == Collective::kReduceScatter ? part : 0;
  if (send + in_send == receive + in_receive) return;
  throw NcclError(ncclInvalidArgument, "sendbuff (" + std::to_string(r.input_bytes) + " bytes at " +
                                           describe_memory(r.input) + ") overlaps recvbuff (" +
                                           std::to_string(r.output_bytes) + " bytes at " + describe_memory(r.output) +
                                           "), and the call is not in place: that needs sendbuff" + plus(in_send) +
                                           " == recvbuff" + plus(in_receive) + " on rank " + std::to_string(rank));
}

void collective(const char* name, ncclComm_t handle, const CollectiveCall& call, const Buffers& buffers,
                cudaStream_t stream) {
  Request request;
  request.communicator = ready_communicator(handle);
  const Communicator& c = *request.communicator;
  const std::size_t width = width_of(static_cast<ncclDataType_t>(call.type));
  if (!is_known(static_cast<ncclRedOp_t>(call.reduction))) {
    throw NcclError(ncclInvalidArgument, "the stand-in does not know reduction " + std::to_string(call.reduction));
  }
  if (call.root < 0 || call.root >= c.size) {
    throw NcclError(ncclInvalidArgument, "root " + std::to_string(call.root) + " is not a rank of " + c.text());
  }
  request.name = name;
  request.is_collective = true;
  request.call = call;
  request.input = buffers.input;
  request.output = buffers.output;
  request.input_bytes = buffers.input_count * width;
  request.output_bytes = buffers.output_count * width;
  check_buffer(c, request.input, request.input_bytes, "sendbuff");
  check_buffer(c, request.output, request.output_bytes, "recvbuff");
  check_overlap(request);
  add_to_group(std::move(request), stream);
}

void point_to_point(const char* name, bool sends, void* buffer, std::size_t count, ncclDataType_t type, int peer,
                    ncclComm_t handle, cudaStream_t stream) {
  Request request;
  request.communicator = ready_communicator(handle);
  const Communicator& c = *request.communicator;
  if (peer < 0 || peer >= c.size) {
    throw NcclError(ncclInvalidArgument, "peer " + std::to_string(peer) + " is not a rank of " + c.text());
  }
  const std::size_t bytes = count * width_of(type);
  check_buffer(c, buffer, bytes, sends ? "sendbuff" : "recvbuff");
  request.name = name;
  request.call.type = type;
  request.sends = sends;
  request.peer = peer;
  (sends ? request.input_bytes : request.output_bytes) = bytes;
  if (sends) {
    request.input = buffer;
  } else {
    request.output = buffer;
  }
  if (bytes > 0) add_to_group(std::move(request), stream);
}

} // namespace

} // namespace triax::gpu_stand_in

using namespace triax::gpu_stand_in; // calls of NCCL have its global names

extern "C" {

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t reduction,
                           ncclComm_t comm, cudaStream_t stream) {
  return nccl_call("ncclAllReduce", [&] {
    collective("ncclAllReduce", comm, {Collective::kAllReduce, type, reduction, 0, count}, {from, to, count, count},
               stream);
  });
}

ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t reduction, ncclComm_t comm, cudaStream_t stream) {
  return nccl_call("ncclReduceScatter", [&] {
    const auto size = static_cast<std::size_t>(find_communicator(comm)->size);
    collective("ncclReduceScatter", comm, {Collective::kReduceScatter, type, reduction, 0, count},
               {from, to, count * size, count}, stream);
  });
}

ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return nccl_call("ncclAllGather", [&] {
    const auto size = static_cast<std::size_t>(find_communicator(comm)->size);
    collective("ncclAllGather", comm, {Collective::kAllGather, type, ncclSum, 0, count},
               {from, to, count, count * size}, stream);
  });
}

ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return nccl_call("ncclBroadcast", [&] {
    const bool is_root = find_communicator(comm)->rank == root;
    collective("ncclBroadcast", comm, {Collective::kBroadcast, type, ncclSum, root, count},
               {from, to, is_root ? count : 0, count}, stream);
  });
}

ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return nccl_call("ncclSend",
                   [&] { point_to_point("ncclSend", true, const_cast<void*>(from), count, type, peer, comm, stream); });
}

ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return nccl_call("ncclRecv", [&] { point_to_point("ncclRecv", false, to, count, type, peer, comm, stream); });
}

ncclResult_t ncclGroupStart() {
  return nccl_call("ncclGroupStart", [] { begin_group(); });
}

ncclResult_t ncclGroupEnd() {
  return nccl_call("ncclGroupEnd", [] { end_group(); });
}

} // extern "C"
