// SPDX-License-Identifier: Apache-2.0
#include "nccl_bootstrap.hpp"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

#include "results.hpp"

namespace triax::comm_nccl {

namespace {

constexpr int kProtocol = 3;            // version of the published values and of the edges
constexpr std::size_t kWarmUpSlots = 3; // slots of a byte: one out, and one in from each neighbour
constexpr int kEdgeCtas = 8;            // maximum blocks of an edge's kernel: the kernels of all edges must fit

/// The values that a member publishes, in this order: version of NCCL, two keys, boot id, name of the machine for NCCL,
/// GPU.
enum Value : std::size_t { version, edges, several, machine, host, gpu };

/// A member that has compared the values and is about to call NCCL.
constexpr std::string_view kBegun = "begun";

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
    : api_(api),
      settings_(settings),
      device_(device),
      group_(group),
      rendezvous_("comm-nccl", kProtocol, {group, store, device, deadline}) {}

GroupHandles Bootstrap::join() {
  return rendezvous_.run([this] {
    publish();
    agree(rendezvous_.collect());
    GroupHandles handles;
    handles.key = rendezvous_.key();
    make_group(handles);
    make_edges(handles);
    warm_up(handles);
    return handles;
  });
}

void Bootstrap::publish() {
  int version = 0;
  check(api_, api_.get_version(&version), "ncclGetVersion", rendezvous_.where());
  rendezvous_.publish({version_text(version),
                       text("edge_communicators = {}", settings_.edge_communicators ? "true" : "false"),
                       text("several_ranks_per_gpu = {}", settings_.several_ranks_per_gpu ? "true" : "false"),
                       machine_text(), host_text(), api_.gpu()});
}

void Bootstrap::agree(const std::vector<Rendezvous::Entry>& peers) const {
  rendezvous_.require_equal(peers, Value::version, "NCCL",
                            "use the same NCCL on all ranks: LD_LIBRARY_PATH may find another on some machine");
  for (const Value key : {Value::edges, Value::several})
    rendezvous_.require_equal(peers, key, "the key", "give all ranks the same TOML file");
  agree_on_gpus(peers);
}

void Bootstrap::agree_on_gpus(const std::vector<Rendezvous::Entry>& peers) const {
  for (int one = 0; one < group_.size(); ++one)
    for (int other = one + 1; other < group_.size(); ++other) {
      const Rendezvous::Entry& a = peers[static_cast<std::size_t>(one)];
      const Rendezvous::Entry& b = peers[static_cast<std::size_t>(other)];
      if (a[Value::gpu] != b[Value::gpu]) continue;
      const bool one_gpu = a[Value::machine] == b[Value::machine], one_for_nccl = a[Value::host] == b[Value::host];
      if (one_gpu && !settings_.several_ranks_per_gpu) // regardless of NCCL_HOSTID
        throw Error(text("{} and {} are on one GPU ({}); NCCL allows one rank per GPU", rank_text(one),
                         rank_text(other), a[Value::gpu]),
                    rendezvous_.where(),
                    "start as many ranks on a machine as it has GPUs; only for tests, several_ranks_per_gpu = true "
                    "allows more");
      if (one_for_nccl)
        throw Error(text("for NCCL, {} and {} have the same GPU ({}) and host ({})", rank_text(one), rank_text(other),
                         a[Value::gpu], a[Value::host]),
                    rendezvous_.where(),
                    one_gpu ? "several_ranks_per_gpu = true needs another NCCL_HOSTID for each rank: unset it"
                            : "two machines have the same NCCL_HOSTID: unset it");
    }
}

ncclUniqueId Bootstrap::unique_id() {
  ncclUniqueId id;
  if (group_.group_rank == 0) {
    check(api_, api_.get_unique_id(&id), "ncclGetUniqueId", rendezvous_.where());
    rendezvous_.set("NCCL's unique id", std::string_view(id.internal, sizeof id.internal));
    return id;
  }
  const std::string value = rendezvous_.get("NCCL's unique id");
  TRIAX_REQUIRE(value.size() == sizeof id.internal, "{} published {} bytes as NCCL's unique id", rank_text(0),
                value.size());
  std::memcpy(id.internal, value.data(), sizeof id.internal);
  return id;
}

void Bootstrap::make_group(GroupHandles& handles) {
  const ncclUniqueId id = unique_id();
  handles.group = std::make_unique<Handle>(api_, rendezvous_.where());
  rendezvous_.reach(kBegun);
  handles.group->begin(id, group_.size(), group_.group_rank, config_of());
  handles.group->wait_until_complete("ncclCommInitRankConfig", [this] { poll("ncclCommInitRankConfig"); });
}

void Bootstrap::make_edges(GroupHandles& handles) {
  if (!settings_.edge_communicators || group_.axis != kPipelineAxis) return;
  ncclConfig_t config = config_of();
  config.maxCTAs = kEdgeCtas;
  for (const std::vector<Edge>& round : rounds_of_edges(group_.size())) {
    const int own = edge_of(round, group_.group_rank);
    const Edge edge = own < 0 ? Edge{} : round[static_cast<std::size_t>(own)];
    auto part = std::make_unique<Handle>(api_, own < 0 ? rendezvous_.where()
                                                       : text("{}, the edge from {} to {}", rendezvous_.where(),
                                                              rank_text(edge.from), rank_text(edge.to)));
    const auto keep_polling = [this] { poll("ncclCommSplit"); };
    try {
      handles.group->begin_split(*part, own, group_.group_rank == edge.from ? kSender : kReceiver, config);
      handles.group->wait_until_complete("ncclCommSplit", keep_polling);
      if (own < 0) continue;
      part->wait_until_complete("ncclCommSplit", keep_polling);
    } catch (...) { // NCCL may write to the part until the group's communicator is destroyed
      handles.abandon();
      throw;
    }
    handles.edges.push_back({edge, std::move(part)});
  }
}

/// The first transfer between two members connects them, and needs both at the same time: do it now, not in a step.
void Bootstrap::warm_up(GroupHandles& handles) {
  if (group_.axis != kPipelineAxis) return;
  const std::unique_ptr<Memory> bytes = device_.allocate(kWarmUpSlots * Arena::kAlignment, MemoryKind::device);
  const std::unique_ptr<Stream> stream = device_.make_stream("comm-nccl: warm-up");
  try {
    auto* const data = static_cast<std::byte*>(bytes->data());
    warm_up_neighbours(*handles.group, data, *stream);
    for (const GroupHandles::EdgeHandle& one : handles.edges) warm_up_edge(one, data, *stream);
    const Event all = stream->record();
    while (!all.fired()) poll("connecting to the neighbours");
    if (const char* why = all.failure()) throw Error(why, rendezvous_.where());
  } catch (...) { // kernels that may write to the memory must end before it is freed
    handles.abandon();
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
        for (const int peer : neighbours(group_.size(), group_.group_rank)) {
          in += Arena::kAlignment;
          if (goes_on(result)) result = api_.send(data, 1, ncclUint8, peer, comm, native);
          if (goes_on(result)) result = api_.recv(in, 1, ncclUint8, peer, comm, native);
        }
        return result;
      },
      [this] { poll("connecting to the neighbours"); });
}

void Bootstrap::warm_up_edge(const GroupHandles::EdgeHandle& one, std::byte* data, Stream& stream) {
  const cudaStream_t native = api_.launch_stream(stream);
  one.handle->launch_set(
      native,
      [&](ncclComm_t comm) {
        return one.edge.from == group_.group_rank
                   ? api_.send(data, 1, ncclUint8, kReceiver, comm, native)
                   : api_.recv(data + Arena::kAlignment, 1, ncclUint8, kSender, comm, native);
      },
      [this] { poll("connecting the edges"); });
}

void Bootstrap::poll(const char* what) {
  if (rendezvous_.expired()) {
    const std::string absent = rendezvous_.missing(kBegun);
    if (!absent.empty()) throw rendezvous_.timeout(absent, what);
    throw Error(text("{}: timed out, though all ranks have joined", what), rendezvous_.where(),
                "set NCCL_DEBUG=INFO to see how far NCCL got, and over which interfaces; NCCL_SOCKET_IFNAME selects "
                "them");
  }
  rendezvous_.poll();
}

} // namespace triax::comm_nccl
