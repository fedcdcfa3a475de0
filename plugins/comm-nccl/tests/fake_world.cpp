// SPDX-License-Identifier: Apache-2.0
// How kernels of the fake match, wait and run.
#include "fake_world.hpp"

#include <algorithm>

#include "support/fake_cuda_device.hpp"
#include "triax/text.hpp"

namespace triax::test::fake {

thread_local ThisThread here;

FakeWorld& FakeWorld::get() {
  static FakeWorld world;
  return world;
}

void FakeWorld::violated(Clique& clique, const std::string& what) {
  violated(what);
  for (Comm* member : clique.members) fail(member, ncclInternalError, what);
  changed.notify_all();
}

void FakeWorld::fail(Comm* comm, ncclResult_t result, const std::string& why) {
  if (!comm) return;
  comm->error = result;
  comm->last_error = why;
}

namespace {

// Kernels, on their streams' threads.

/// No data moves to or from a member that has stopped, because its memory may be freed. Nor after a violation: a call
/// that would hang in NCCL hangs until it is aborted.
bool all_begun(const std::vector<std::shared_ptr<Call>>& calls) {
  return std::ranges::all_of(calls, [](const std::shared_ptr<Call>& call) {
    const std::shared_ptr<Kernel> kernel = call ? call->kernel.lock() : nullptr;
    return kernel && kernel->begun && !stopped(*kernel->comm) && kernel->comm->error == ncclSuccess;
  });
}

void move_what_can(Kernel& kernel) {
  for (const std::shared_ptr<Call>& call : kernel.calls) {
    if (call->moved) continue;
    if (is_transfer(*call)) {
      const std::shared_ptr<Call> partner = call->partner.lock();
      if (!partner || !all_begun({partner})) continue;
      const bool sends = call->kind == Call::Kind::send;
      run_transfer(sends ? *call : *partner, sends ? *partner : *call);
      call->moved = partner->moved = true;
      continue;
    }
    for (const auto& together : kernel.comm->clique->collectives) {
      if (std::ranges::find(together, call) == together.end() || !all_begun(together)) continue;
      run_collective(together);
      for (const auto& one : together) one->moved = true;
    }
  }
}

void run(const std::shared_ptr<Kernel>& kernel) {
  FakeWorld& world = FakeWorld::get();
  std::unique_lock lock(world.mutex);
  world.changed.wait(lock, [&] { return stopped(*kernel->comm) || std::ranges::all_of(kernel->before, is_over); });
  if (!stopped(*kernel->comm)) {
    kernel->begun = true;
    move_what_can(*kernel);
    world.changed.notify_all();
    world.changed.wait(lock, [&] {
      return stopped(*kernel->comm) || std::ranges::all_of(kernel->calls, [](const auto& call) { return call->moved; });
    });
  }
  kernel->over = true;
  world.changed.notify_all();
}

// Calls, on the ranks' threads, with the lock held.

std::vector<std::shared_ptr<Kernel>> matched_by(const Kernel& kernel) {
  std::vector<std::shared_ptr<Kernel>> out;
  const auto add = [&out](const std::shared_ptr<Call>& call) {
    if (const auto other = call ? call->kernel.lock() : nullptr) out.push_back(other);
  };
  for (const auto& call : kernel.calls) {
    if (is_transfer(*call)) add(call->partner.lock());
    for (const auto& together : kernel.comm->clique->collectives)
      if (std::ranges::find(together, call) != together.end()) std::ranges::for_each(together, add);
  }
  return out;
}

/// The kernels that must end before this one can: those before it, and those before the kernels that it matches.
std::vector<std::shared_ptr<Kernel>> awaited_by(const Kernel& kernel) {
  std::vector<std::shared_ptr<Kernel>> out;
  const auto add_before = [&out](const Kernel& one) {
    for (const auto& before : one.before)
      if (const auto other = before.lock(); other && !other->over) out.push_back(other);
  };
  add_before(kernel);
  for (const auto& matched : matched_by(kernel)) add_before(*matched);
  return out;
}

/// True if the graph of waits has a cycle that can be reached from `kernel`; `way` then ends in it.
bool goes_round(const Kernel& kernel, std::set<const Kernel*>& way, std::set<const Kernel*>& through) {
  if (!way.insert(&kernel).second) return true;
  for (const auto& other : awaited_by(kernel))
    if (!through.contains(other.get()) && goes_round(*other, way, through)) return true;
  way.erase(&kernel);
  through.insert(&kernel);
  return false;
}

void report_cycles(const std::shared_ptr<Kernel>& kernel) {
  std::set<const Kernel*> way, through;
  if (!goes_round(*kernel, way, through)) return;
  FakeWorld& world = FakeWorld::get();
  std::string calls;
  for (const Kernel* one : way)
    for (const auto& call : one->calls)
      calls += (calls.empty() ? "" : ", ") + text("{} on rank {}", text_of(*call), one->comm->process);
  world.violated(text("would hang: these wait for each other: {}", calls));
  for (const Kernel* one : way)
    for (Comm* member : one->comm->clique->members) FakeWorld::fail(member, ncclInternalError, world.wrong.back());
  world.changed.notify_all();
}

} // namespace

void launch(const std::shared_ptr<Kernel>& kernel) {
  FakeWorld& world = FakeWorld::get();
  Comm& comm = *kernel->comm;
  kernel->before.push_back(comm.last);
  if (world.rules.one_kernel_a_gpu) kernel->before.push_back(world.on_gpu[comm.process]);
  kernel->before.push_back(world.on_stream[kernel->stream]);
  comm.last = kernel;
  std::erase_if(comm.under, is_over);
  comm.under.push_back(kernel);
  world.on_gpu[comm.process] = kernel;
  world.on_stream[kernel->stream] = kernel;
  for (const auto& call : kernel->calls) call->kernel = kernel;
  report_cycles(kernel);
  static_cast<FakeCudaStream*>(kernel->stream)->enqueue([kernel] { run(kernel); });
}

namespace {

void match(Comm& comm, const std::shared_ptr<Call>& call) {
  Clique& clique = *comm.clique;
  FakeWorld& world = FakeWorld::get();
  if (!is_transfer(*call)) {
    const std::size_t number = comm.collectives++;
    if (clique.collectives.size() <= number) clique.collectives.emplace_back(clique.members.size());
    auto& together = clique.collectives[number];
    for (std::size_t member = 0; member < together.size(); ++member)
      if (together[member] && text_of(*together[member]) != text_of(*call))
        world.violated(clique, text("{} on rank {} meets {} on rank {}", text_of(*call), comm.process,
                                    text_of(*together[member]), clique.members[member]->process));
    together[static_cast<std::size_t>(comm.member)] = call;
    return;
  }
  const bool sends = call->kind == Call::Kind::send;
  const std::pair<int, int> along = sends ? std::pair(comm.member, call->peer) : std::pair(call->peer, comm.member);
  auto& others = sends ? clique.wanted[along] : clique.sent[along];
  if (others.empty()) {
    (sends ? clique.sent[along] : clique.wanted[along]).push_back(call);
    return;
  }
  const std::shared_ptr<Call> partner = others.front();
  others.pop_front();
  call->partner = partner;
  partner->partner = call;
  clique.connected[along] = true;
  if (partner->count != call->count || partner->type != call->type)
    world.violated(clique, text("{} meets {}, from member {} to member {}", text_of(*call), text_of(*partner),
                                along.first, along.second));
}

} // namespace

bool connected(const Kernel& kernel) {
  for (const auto& call : kernel.calls) {
    if (!is_transfer(*call)) continue;
    const int own = kernel.comm->member;
    const bool sends = call->kind == Call::Kind::send;
    if (!kernel.comm->clique->connected[sends ? std::pair(own, call->peer) : std::pair(call->peer, own)]) return false;
  }
  return true;
}

ncclResult_t submit(const std::vector<Waiting>& group) {
  FakeWorld& world = FakeWorld::get();
  std::vector<std::shared_ptr<Kernel>> kernels;
  for (const Waiting& one : group) {
    auto found = std::ranges::find(kernels, one.comm, [](const auto& kernel) { return kernel->comm; });
    if (found == kernels.end()) {
      kernels.push_back(std::make_shared<Kernel>());
      found = kernels.end() - 1;
      (*found)->comm = one.comm;
      (*found)->stream = one.stream;
    }
    (*found)->calls.push_back(one.call);
  }
  ncclResult_t result = ncclSuccess;
  for (const auto& kernel : kernels) {
    for (const auto& call : kernel->calls) match(*kernel->comm, call);
    if (connected(*kernel)) {
      launch(kernel);
    } else {
      kernel->comm->waiting = kernel;
      ++world.count.late_connections;
      result = ncclInProgress;
    }
  }
  return result;
}

} // namespace triax::test::fake
