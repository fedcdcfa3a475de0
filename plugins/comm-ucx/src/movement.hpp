// all_gather, all_to_all and broadcast: openings and data at once, the data straight between the members' buffers; of
// device memory as flows, one to each member or one to all.
//
// Threads, ownership, blocking: as for calls. A broadcast's root hears from all, who hear from it alone.
#pragma once

#include "collective.hpp"

namespace comm_ucx {

class Movement final : public Collective {
 public:
  Movement(Links& links, const Plan& plan);
  Room room(const Signature& signature) const noexcept override;

 private:
  /// What goes to a member or comes from it; nothing where bytes are negative.
  struct Piece {
    std::int64_t begin = 0, bytes = -1;
  };

  void launch() noexcept override;
  bool run() noexcept override;
  bool meets(int member) const noexcept;
  Piece out_piece(int member) const noexcept;
  Piece in_piece(int member) const noexcept;
  void keep_own() noexcept;
  void launch_flows() noexcept;
  bool run_flows() noexcept;
  /// Whether all members get the same.
  static bool same_to_all(Kind kind) noexcept { return kind != Kind::all_to_all; }
  Flow flow(std::byte* device, std::int64_t bytes, Use use, int first, int last, int source) noexcept;

  const std::size_t piece_;
  std::vector<Flow> ins_, outs_; // room for as many as there may be

  int agreed_ = 0; // members before it agree
};

} // namespace comm_ucx
