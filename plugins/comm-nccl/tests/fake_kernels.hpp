// SPDX-License-Identifier: Apache-2.0
// Data structures of the fake NCCL: communicators, the calls that match in them, and kernels.
//
// Threads: any, with the fake's lock held. Ownership: shared.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fake_nccl.hpp"
#include "triax/text.hpp"

struct ncclComm {}; // opaque, as in NCCL's header

namespace triax::test::fake {

struct Comm;
struct Kernel;

/// One call, as a member made it.
struct Call {
  enum class Kind { all_reduce, reduce_scatter, all_gather, broadcast, send, recv } kind = Kind::send;
  const void* in = nullptr;
  void* out = nullptr;
  std::size_t count = 0; // NCCL's count argument
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t reduce = ncclSum;
  int peer = 0; // peer of a transfer, or root
  bool moved = false;
  std::weak_ptr<Kernel> kernel = {};
  std::weak_ptr<Call> partner = {}; // matching call of a transfer
};

/// The calls of one NCCL group on one communicator, which run together.
struct Kernel {
  Comm* comm = nullptr;
  void* stream = nullptr;
  std::vector<std::shared_ptr<Call>> calls;
  std::vector<std::weak_ptr<Kernel>> before; // must end before this one begins
  bool begun = false, over = false;
};

/// The members of a communicator, and their calls.
struct Clique {
  std::vector<Comm*> members;
  std::vector<std::vector<std::shared_ptr<Call>>> collectives;                   // by number, by member
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<Call>>> sent, wanted; // unmatched, by (from, to)
  std::map<std::pair<int, int>, bool> connected;
  std::map<int, std::vector<std::pair<int, int>>> splits; // by number: color, key of each member; {-2, 0}: not yet
  std::map<std::pair<int, int>, std::shared_ptr<Clique>> parts; // by number of the split and color
  bool complete() const;
};

struct Comm : ncclComm {
  std::shared_ptr<Clique> clique;
  int member = 0, process = 0, polls = 0, split_calls = 0;
  std::size_t collectives = 0;
  bool made = false, aborted = false, ended = false, finalized = false, dead = false, splitting = false;
  ncclResult_t error = ncclSuccess;
  std::string last_error;
  std::weak_ptr<Kernel> last;               // last kernel on this communicator
  std::vector<std::weak_ptr<Kernel>> under; // kernels on streams
  std::shared_ptr<Kernel> waiting;          // waits for its peers to connect, before it is enqueued
  int split_polls = 0;
  Comm* child = nullptr;            // of the current split
  ncclComm_t* guaranteed = nullptr; // where to write the child
  std::size_t blocks = 0;           // registered
};

/// A kernel that has no owner any more has completed on its stream.
inline bool is_over(const std::weak_ptr<Kernel>& kernel) {
  const std::shared_ptr<Kernel> one = kernel.lock();
  return !one || one->over;
}

inline bool is_transfer(const Call& call) {
  return call.kind == Call::Kind::send || call.kind == Call::Kind::recv;
}
/// Such as "all_reduce of 8 f32 (sum)".
std::string text_of(const Call& call);
std::size_t width_of(ncclDataType_t type);
/// Moves the data of a collective, given the calls of all members.
void run_collective(const std::vector<std::shared_ptr<Call>>& calls);
void run_transfer(const Call& send, const Call& recv);

} // namespace triax::test::fake
