// How the members of a group meet: each publishes its card in the store, all compare them, the first gives out NCCL's
// unique id, and all make the communicator together, then those of the edges, then move a byte between neighbours, so
// that nothing is connected later, in the middle of a step.
//
// Threads: the rank's main thread. Ownership: the caller's. Blocking: until the deadline; pumps, and reads the device's
// interrupt. Errors: throws, naming who is missing; those who come later are told that the others gave up.
//
// A communicator for each group, by an id of its own, and not ncclCommSplit of one for the world: a split is called by
// all ranks of what is split, and a group may be joined alone, by its members only. Groups are joined in the order of
// the layout's axes by all ranks, so no two wait for each other in different groups. Edges are parts of their group,
// whose members are all there: they are splits.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "edges.hpp"
#include "handle.hpp"
#include "settings.hpp"

namespace comm_nccl {

/// What a communicator is made of.
struct Meeting {
  struct EdgeHandle {
    Edge edge;
    std::unique_ptr<Handle> handle;
  };
  std::string key; // of this meeting in the store
  std::unique_ptr<Handle> group;
  std::vector<EdgeHandle> edges; // that this member belongs to

  /// Aborts all at once, and waits until all are through.
  void abandon() noexcept;
};

class Joining {
 public:
  Joining(const NcclApi& api, const Settings& settings, Device& device, const Group& group, Store& store,
          Deadline deadline);
  Meeting join();

 private:
  /// What a member publishes.
  struct Card {
    std::string protocol, ranks, version, keys, permission;
    std::string machine; // by its boot
    std::string host;    // the machine's name as NCCL takes it
    std::string gpu;
  };

  /// A card's lines in the store.
  static constexpr std::array kLines = {&Card::protocol,   &Card::ranks,   &Card::version, &Card::keys,
                                        &Card::permission, &Card::machine, &Card::host,    &Card::gpu};

  Card own_card() const;
  std::vector<Card> collect();
  bool fetch(const std::string& key, std::string& value);
  void agree(const std::vector<Card>& cards) const;
  void agree_on_gpus(const std::vector<Card>& cards) const;
  ncclUniqueId unique_id();
  void make_group(Meeting& meeting);
  void make_edges(Meeting& meeting);
  void greet(Meeting& meeting);
  void greet_neighbours(Handle& group, std::byte* data, Stream& stream);
  void greet_along(const Meeting::EdgeHandle& one, std::byte* data, Stream& stream);
  /// Once in a while that NCCL takes: looks at the deadline, the interrupt, and whether the others have given up.
  void turn(const char* what);
  std::string missing();
  void check_given_up();
  void give_up(std::string_view why) noexcept;
  std::string place() const { return text("group {}", group_.id); }
  std::string rank_text(int member) const;

  const NcclApi& api_;
  const Settings& settings_;
  Device& device_;
  const Group& group_;
  Store& store_;
  const Deadline deadline_;
  Clock::time_point next_look_ = Clock::now();
  std::string key_;
};

} // namespace comm_nccl
