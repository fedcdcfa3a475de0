// all_gather, all_to_all and broadcast: openings and data at once, the data straight between the members' buffers.
//
// Threads, ownership, blocking: as for calls. A broadcast's root hears from all, who hear from it alone.
#pragma once

#include "collective.hpp"

namespace comm_ucx {

class Movement final : public Collective {
 public:
  using Collective::Collective;

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

  int agreed_ = 0; // members before it agree
};

} // namespace comm_ucx
