// SPDX-License-Identifier: Apache-2.0
// NCCL calls: communicators, versions and errors.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "communicator.hpp"

namespace triax::gpu_stand_in {

namespace {

constexpr int kFewBlocks = 8; // with at most so many, kernels of two communicators run beside each other

// The numbers that the stand-in does not follow. The later ones are not in all versions of NCCL.
template <class Config>
std::vector<std::pair<const char*, int>> unknown_numbers(const Config& c) {
  std::vector<std::pair<const char*, int>> out = {{"cgaClusterSize", c.cgaClusterSize}, {"minCTAs", c.minCTAs}};
  if (c.splitShare != 0) out.emplace_back("splitShare", c.splitShare);
  if constexpr (requires { c.trafficClass; }) out.emplace_back("trafficClass", c.trafficClass);
  if constexpr (requires { c.collnetEnable, c.CTAPolicy, c.shrinkShare, c.nvlsCTAs; }) {
    out.insert(out.end(), {{"collnetEnable", c.collnetEnable},
                           {"CTAPolicy", c.CTAPolicy},
                           {"shrinkShare", c.shrinkShare},
                           {"nvlsCTAs", c.nvlsCTAs}});
  }
  if constexpr (requires { c.nChannelsPerNetPeer, c.nvlinkCentricSched; }) {
    out.insert(out.end(),
               {{"nChannelsPerNetPeer", c.nChannelsPerNetPeer}, {"nvlinkCentricSched", c.nvlinkCentricSched}});
  }
  return out;
}

void check_config(const ncclConfig_t& config) {
  const auto refuse = [](const char* field) {
    throw NcclError(ncclInvalidArgument, std::string("the stand-in does not know ncclConfig_t::") + field);
  };
  for (const auto& [field, value] : unknown_numbers(config)) {
    if (value != NCCL_CONFIG_UNDEF_INT) refuse(field);
  }
  if (config.netName != NCCL_CONFIG_UNDEF_PTR) refuse("netName");
}

CommunicatorPtr make_communicator(const ncclConfig_t* config) {
  if (config) check_config(*config);
  auto c = std::make_shared<Communicator>();
  c->device = current_device();
  c->is_concurrent = config && config->maxCTAs != NCCL_CONFIG_UNDEF_INT && config->maxCTAs <= kFewBlocks;
  return c;
}

bool is_blocking(const ncclConfig_t* config) {
  return !config || config->blocking != 0;
}

// Waits if the communicator blocks. Throws NcclError if it does not join; ncclInProgress if it still does.
void wait_until_joined(const CommunicatorPtr& c, bool blocking) {
  while (blocking && c->state == ncclInProgress) std::this_thread::sleep_for(std::chrono::microseconds(200));
  if (c->state != ncclSuccess) throw NcclError(c->state, c->text() + " does not join");
}

// Rank and size of the members with this color, ordered by key, then by rank in the parent.
void place(Communicator& c, const Communicator& parent, const SplitEntry* entries) {
  const SplitEntry& own = entries[parent.rank];
  c.size = c.rank = 0;
  for (int n = 0; n < parent.size; ++n) {
    if (entries[n].color != own.color) continue;
    ++c.size;
    if (entries[n].key < own.key || (entries[n].key == own.key && n < parent.rank)) ++c.rank;
  }
}

void split(const CommunicatorPtr& parent, const CommunicatorPtr& c, int number, int color) {
  const SplitEntry* entries = parent->segment.load()->splits[number];
  WaitReport late;
  for (int n = 0; n < parent->size; ++n) {
    while (entries[n].is_there == 0 && !parent->is_broken()) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      parent->check_members();
      late.check("ncclCommSplit of " + parent->text(),
                 [n] { return "; rank " + std::to_string(n) + " has not called it"; });
    }
  }
  if (std::any_of(entries, entries + parent->size, [](const SplitEntry& entry) { return entry.is_there == 0; })) {
    c->state = parent->state = ncclRemoteError;
    return;
  }
  parent->state = ncclSuccess;
  if (color == NCCL_SPLIT_NOCOLOR) return;
  place(*c, *parent, entries);
  c->name = parent->name + "." + std::to_string(number) + "." + std::to_string(color);
  c->join();
}

} // namespace

} // namespace triax::gpu_stand_in

using namespace triax::gpu_stand_in; // calls of NCCL have its global names

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  return nccl_call("ncclGetVersion", [&] { *version = NCCL_VERSION_CODE; });
}

const char* ncclGetErrorString(ncclResult_t result) {
  constexpr const char* kTexts[] = {"no error",
                                    "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
                                    "unhandled system error (run with NCCL_DEBUG=INFO for details)",
                                    "internal error - please report this issue to the NCCL developers",
                                    "invalid argument (run with NCCL_DEBUG=WARN for details)",
                                    "invalid usage (run with NCCL_DEBUG=WARN for details)",
                                    "remote process exited or there was a network error",
                                    "NCCL operation in progress"};
  return result >= ncclSuccess && result <= ncclInProgress ? kTexts[result] : "unknown result code";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  return nccl_call("ncclGetUniqueId", [&] {
    static std::atomic<unsigned> number = 0;
    std::memset(id, 0, sizeof *id);
    // The time, because a killed process may have left a segment behind, and its id may be this one's.
    std::snprintf(id->internal, sizeof id->internal, "/gpu-stand-in-%d-%u-%lld", static_cast<int>(getpid()), ++number,
                  static_cast<long long>(std::chrono::system_clock::now().time_since_epoch().count()));
  });
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
  return nccl_call("ncclCommInitRankConfig", [&] {
    *comm = nullptr;
    if (size < 1 || size > kMaxMembers) {
      throw NcclError(ncclInvalidArgument, "a communicator of " + std::to_string(size) +
                                               "; the stand-in supports 1 to " + std::to_string(kMaxMembers) +
                                               " members");
    }
    if (rank < 0 || rank >= size) {
      throw NcclError(ncclInvalidArgument, "rank " + std::to_string(rank) + " of " + std::to_string(size));
    }
    const CommunicatorPtr c = make_communicator(config);
    c->name.assign(id.internal, strnlen(id.internal, sizeof id.internal));
    c->rank = rank;
    c->size = size;
    *comm = add_communicator(c);
    std::thread([c] { c->join(); }).detach();
    wait_until_joined(c, is_blocking(config));
  });
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made, ncclConfig_t* config) {
  return nccl_call("ncclCommSplit", [&] {
    const CommunicatorPtr parent = find_communicator(comm);
    *made = nullptr;
    if (parent->state != ncclSuccess || parent->is_over()) {
      throw NcclError(ncclInvalidUsage, parent->text() + " is not ready: it joins, or was aborted");
    }
    const int number = parent->splits++;
    if (number >= kMaxSplits) throw NcclError(ncclInvalidUsage, "more than 64 splits of " + parent->text());
    SplitEntry& entry = parent->segment.load()->splits[number][parent->rank];
    entry.color = color;
    entry.key = key;
    entry.is_there = 1;
    const CommunicatorPtr c = make_communicator(config);
    if (color != NCCL_SPLIT_NOCOLOR) *made = add_communicator(c);
    parent->state = ncclInProgress;
    std::thread([=] { split(parent, c, number, color); }).detach();
    wait_until_joined(parent, is_blocking(config));
    if (color != NCCL_SPLIT_NOCOLOR) wait_until_joined(c, is_blocking(config));
  });
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  return nccl_call("ncclCommGetAsyncError", [&] {
    const CommunicatorPtr c = find_communicator(comm);
    *error = c->state;
    if (c->is_finalized && !c->may_end()) *error = ncclInProgress;
    if (*error == ncclSuccess && c->is_over()) *error = ncclRemoteError;
  });
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return nccl_call("ncclCommFinalize", [&] { find_communicator(comm)->is_finalized = true; });
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return nccl_call("ncclCommDestroy", [&] {
    const CommunicatorPtr c = find_communicator(comm);
    while ((c->calls > 0 || c->state == ncclInProgress) && !c->is_over() && sticky_error(c->device) == cudaSuccess) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    c->wait_for_graphs("ncclCommDestroy");
    c->leave();
    remove_communicator(comm);
  });
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return nccl_call("ncclCommAbort", [&] {
    const CommunicatorPtr c = find_communicator(comm);
    c->aborted = true;
    if (Segment* shared = c->segment) shared->left = 1;
    c->wait_for_graphs("ncclCommAbort");
    c->leave();
    remove_communicator(comm);
  });
}

ncclResult_t ncclCommRegister(ncclComm_t comm, void* address, std::size_t bytes, void** handle) {
  return nccl_call("ncclCommRegister", [&] {
    find_communicator(comm);
    const auto found = find_memory(address);
    const auto at = reinterpret_cast<std::uint64_t>(address);
    if (!found || bytes > found->allocation.bytes - (at - found->allocation.address)) {
      throw NcclError(ncclInvalidArgument, std::to_string(bytes) + " bytes are not in one allocation; they begin at " +
                                               describe_memory(address));
    }
    *handle = address;
  });
}

ncclResult_t ncclCommDeregister(ncclComm_t comm, void*) {
  return nccl_call("ncclCommDeregister", [&] { find_communicator(comm); });
}

} // extern "C"
