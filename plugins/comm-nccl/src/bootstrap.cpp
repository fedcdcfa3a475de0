// SPDX-License-Identifier: Apache-2.0
#include "bootstrap.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

#include "results.hpp"

namespace triax::comm_nccl {

namespace {

using namespace std::chrono_literals;

constexpr auto kBootstrapPoll = 50ms;            // between polls of the store
constexpr const char* kProtocol = "comm-nccl 2"; // equal on all members: version of the store keys and of the edges
constexpr std::size_t kGreeting = 3;             // slots of a byte: one out, and one in from each neighbour
constexpr int kEdgeCtas = 8;                     // most blocks of an edge's kernel: the kernels of all edges must fit

std::string ranks_text(const Group& group) {
  std::string list;
  for (const int rank : group.ranks) list += (list.empty() ? "" : ", ") + std::to_string(rank);
  return list;
}

std::string machine_text() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  return boot;
}

/// Identifies the machine as NCCL does: by NCCL_HOSTID, else by the boot id.
std::string host_text() {
  const char* const given = std::getenv("NCCL_HOSTID");
  return given ? given : machine_text();
}

ncclConfig_t config_of() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

} // namespace

void GroupHandles::abandon() noexcept {
  for (const EdgeHandle& one : edges) one.handle->abort();
  if (group) group->abort();
  edges.clear();
  group.reset();
}

Bootstrap::Bootstrap(const NcclApi& api, const Settings& settings, Device& device, const Group& group, Store& store,
                     Deadline deadline)
    : api_(api), settings_(settings), device_(device), group_(group), store_(store), deadline_(deadline) {}

std::string Bootstrap::rank_text(int member) const {
  return text("rank {}", group_.ranks[static_cast<std::size_t>(member)]);
}

GroupHandles Bootstrap::join() {
  // A member's k-th join of the group matches the k-th join of the others, on any of its backends.
  const std::string group_key = text("comm-nccl/{}", group_.id);
  key_ = text("{}/{}", group_key, store_.add(text("{}/joins/{}", group_key, group_.index), 1));
  try {
    if (store_.add(key_ + "/given up", 0) > 0) check_given_up();
    const PeerInfo own = own_info();
    std::string lines;
    for (const auto line : kLines) lines += own.*line + "\n";
    store_.set(text("{}/card {}", key_, group_.index), lines);
    const std::vector<PeerInfo> peers = collect();
    agree(peers);
    GroupHandles meeting;
    meeting.key = key_;
    make_group(meeting);
    make_edges(meeting);
    warm_up(meeting);
    return meeting;
  } catch (const std::exception& error) {
    give_up(error.what());
    throw;
  }
}

Bootstrap::PeerInfo Bootstrap::own_info() const {
  int version = 0;
  check(api_, api_.get_version(&version), "ncclGetVersion", place());
  return {kProtocol,
          ranks_text(group_),
          version_text(version),
          text("edge_communicators = {}", settings_.edge_communicators ? "true" : "false"),
          text("several_ranks_per_gpu = {}", settings_.several_ranks_per_gpu ? "true" : "false"),
          machine_text(),
          host_text(),
          api_.gpu()};
}

/// Returns false if the key is not there within kBootstrapPoll; rethrows other errors of the store.
bool Bootstrap::fetch(const std::string& key, std::string& value) {
  const Deadline slice = std::min(deadline_, Clock::now() + kBootstrapPoll);
  try {
    value = store_.get(key, slice);
    return true;
  } catch (const Error&) {
    if (Clock::now() < slice) throw; // not a timeout: the store has failed
    return false;
  }
}

std::vector<Bootstrap::PeerInfo> Bootstrap::collect() {
  std::vector<PeerInfo> peers;
  std::string value, absent;
  for (int member = 0; member < group_.size(); ++member) {
    bool come = false;
    while (!(come = fetch(text("{}/card {}", key_, member), value))) {
      device_.abort_flag().check();
      device_.progress();
      check_given_up();
      if (Clock::now() >= deadline_) break;
    }
    if (!come) absent += (absent.empty() ? "" : ", ") + std::to_string(group_.ranks[static_cast<std::size_t>(member)]);
    PeerInfo& card = peers.emplace_back();
    std::size_t begin = 0;
    for (const auto line : kLines) {
      const std::size_t end = std::min(value.find('\n', begin), value.size());
      card.*line = value.substr(begin, end - begin);
      begin = std::min(end + 1, value.size());
    }
  }
  if (absent.empty()) return peers;
  throw Error(text("timed out waiting for ranks to join: rank {}", absent), place(),
              "they may be slow, lost, or in another group");
}

void Bootstrap::agree(const std::vector<PeerInfo>& peers) const {
  const PeerInfo& own = peers[static_cast<std::size_t>(group_.index)];
  const auto same = [&](std::string PeerInfo::*line, std::string_view what, const char* hint) {
    for (int member = 0; member < group_.size(); ++member) {
      const std::string& theirs = peers[static_cast<std::size_t>(member)].*line;
      if (theirs != own.*line)
        throw Error(
            text("{} has {} {}, {} has {}", rank_text(member), what, theirs, rank_text(group_.index), own.*line),
            place(), hint);
    }
  };
  same(&PeerInfo::protocol, "the protocol", "use the same version of comm-nccl on all ranks");
  same(
      &PeerInfo::ranks, "other ranks:",
      "give all ranks the same TOML file, and start as many as its [parallel] asks for, each with a number of its own");
  same(&PeerInfo::version, "NCCL", "use the same NCCL on all ranks: LD_LIBRARY_PATH may find another on some machine");
  same(&PeerInfo::keys, "the key", "give all ranks the same TOML file");
  same(&PeerInfo::permission, "the key", "give all ranks the same TOML file");
  agree_on_gpus(peers);
}

void Bootstrap::agree_on_gpus(const std::vector<PeerInfo>& peers) const {
  for (int one = 0; one < group_.size(); ++one)
    for (int other = one + 1; other < group_.size(); ++other) {
      const PeerInfo& a = peers[static_cast<std::size_t>(one)];
      const PeerInfo& b = peers[static_cast<std::size_t>(other)];
      if (a.gpu != b.gpu) continue;
      const bool one_gpu = a.machine == b.machine, one_for_nccl = a.host == b.host;
      if (one_gpu && !settings_.several_ranks_per_gpu) // regardless of NCCL_HOSTID
        throw Error(text("{} and {} are on one GPU ({}), and NCCL takes one rank for each", rank_text(one),
                         rank_text(other), a.gpu),
                    place(),
                    "start as many ranks on a machine as it has GPUs; for tests of correctness alone, "
                    "several_ranks_per_gpu = true permits it");
      if (one_for_nccl)
        throw Error(text("{} and {} are on a GPU {} of a machine {}, and NCCL takes that for one GPU", rank_text(one),
                         rank_text(other), a.gpu, a.host),
                    place(),
                    one_gpu ? "several_ranks_per_gpu = true needs another NCCL_HOSTID for each rank: unset it"
                            : "NCCL_HOSTID gives two machines one name: unset it");
    }
}

ncclUniqueId Bootstrap::unique_id() {
  ncclUniqueId id;
  if (group_.index == 0) {
    check(api_, api_.get_unique_id(&id), "ncclGetUniqueId", place());
    store_.set(key_ + "/id", std::string_view(id.internal, sizeof id.internal));
    return id;
  }
  std::string value;
  while (!fetch(key_ + "/id", value)) turn("waiting for NCCL's unique id");
  TRIAX_REQUIRE(value.size() == sizeof id.internal, "{} published {} bytes as NCCL's unique id", rank_text(0),
                value.size());
  std::memcpy(id.internal, value.data(), sizeof id.internal);
  return id;
}

void Bootstrap::make_group(GroupHandles& meeting) {
  const ncclUniqueId id = unique_id();
  meeting.group = std::make_unique<Handle>(api_, place());
  store_.add(text("{}/begun {}", key_, group_.index), 1);
  meeting.group->begin(id, group_.size(), group_.index, config_of());
  meeting.group->settle("ncclCommInitRankConfig", [this] { turn("ncclCommInitRankConfig"); });
}

void Bootstrap::make_edges(GroupHandles& meeting) {
  if (!settings_.edge_communicators || group_.axis != "pipeline") return;
  ncclConfig_t config = config_of();
  config.maxCTAs = kEdgeCtas;
  for (const std::vector<Edge>& round : rounds_of_edges(group_.size())) {
    const int own = edge_of(round, group_.index);
    const Edge edge = own < 0 ? Edge{} : round[static_cast<std::size_t>(own)];
    auto part = std::make_unique<Handle>(
        api_,
        own < 0 ? place() : text("{}, the edge from {} to {}", place(), rank_text(edge.from), rank_text(edge.to)));
    const auto go_on = [this] { turn("ncclCommSplit"); };
    try {
      meeting.group->begin_split(*part, own, group_.index == edge.from ? kSender : kReceiver, config);
      meeting.group->settle("ncclCommSplit", go_on);
      if (own < 0) continue;
      part->settle("ncclCommSplit", go_on);
    } catch (...) { // NCCL may write to the part until the group's communicator is destroyed
      meeting.abandon();
      throw;
    }
    meeting.edges.push_back({edge, std::move(part)});
  }
}

/// The first transfer between two members connects them, and needs both at the same time: do it now, not in a step.
void Bootstrap::warm_up(GroupHandles& meeting) {
  if (group_.axis != "pipeline") return;
  const std::unique_ptr<Memory> bytes = device_.allocate(kGreeting * Arena::kAlignment, MemoryKind::device);
  const std::unique_ptr<Stream> stream = device_.make_stream("comm-nccl: greetings");
  try {
    auto* const data = static_cast<std::byte*>(bytes->data());
    warm_up_neighbours(*meeting.group, data, *stream);
    for (const GroupHandles::EdgeHandle& one : meeting.edges) warm_up_edge(one, data, *stream);
    const Event all = stream->record();
    while (!all.fired()) turn("greeting the neighbours");
    if (const char* why = all.failure()) throw Error(why, place());
  } catch (...) { // kernels that may write to the memory must end before it is freed
    meeting.abandon();
    throw;
  }
}

void Bootstrap::warm_up_neighbours(Handle& group, std::byte* data, Stream& stream) {
  const cudaStream_t native = api_.launch_stream(stream);
  group.launch_set(
      native,
      [&](ncclComm_t comm) {
        ncclResult_t result = ncclSuccess;
        std::byte* in = data;
        for (const int peer : neighbours(group_.size(), group_.index)) {
          in += Arena::kAlignment;
          if (goes_on(result)) result = api_.send(data, 1, ncclUint8, peer, comm, native);
          if (goes_on(result)) result = api_.recv(in, 1, ncclUint8, peer, comm, native);
        }
        return result;
      },
      [this] { turn("greeting the neighbours"); });
}

void Bootstrap::warm_up_edge(const GroupHandles::EdgeHandle& one, std::byte* data, Stream& stream) {
  const cudaStream_t native = api_.launch_stream(stream);
  one.handle->launch_set(
      native,
      [&](ncclComm_t comm) {
        return one.edge.from == group_.index ? api_.send(data, 1, ncclUint8, kReceiver, comm, native)
                                             : api_.recv(data + Arena::kAlignment, 1, ncclUint8, kSender, comm, native);
      },
      [this] { turn("greeting along the edges"); });
}

void Bootstrap::turn(const char* what) {
  device_.abort_flag().check();
  const auto now = Clock::now();
  if (now >= next_look_) {
    next_look_ = now + kBootstrapPoll;
    check_given_up();
  }
  if (now >= deadline_) {
    const std::string absent = missing();
    if (!absent.empty())
      throw Error(text("{}: timed out waiting for ranks to join: rank {}", what, absent), place(),
                  "they may be slow or lost");
    throw Error(text("{} timed out, although all ranks have joined", what), place(),
                "set NCCL_DEBUG=INFO to see its progress and its interfaces; NCCL_SOCKET_IFNAME selects "
                "them");
  }
  if (!device_.progress()) sched_yield();
}

/// Members that have compared peers but have not reached the NCCL call.
std::string Bootstrap::missing() {
  std::string list;
  for (int member = 0; member < group_.size(); ++member)
    if (store_.add(text("{}/begun {}", key_, member), 0) == 0)
      list += (list.empty() ? "" : ", ") + std::to_string(group_.ranks[static_cast<std::size_t>(member)]);
  return list;
}

void Bootstrap::check_given_up() {
  if (store_.add(key_ + "/given up", 0) == 0) return;
  std::string why;
  fetch(key_ + "/why", why);
  throw Error(text("the other ranks failed: {}", why), place(), "start the ranks together");
}

void Bootstrap::give_up(std::string_view why) noexcept {
  try {
    store_.set(key_ + "/why", text("{} could not join: {}", rank_text(group_.index), why));
    store_.add(key_ + "/given up", 1);
  } catch (const std::exception&) { // the store is gone, so no member waits there
    return;
  }
}

} // namespace triax::comm_nccl
