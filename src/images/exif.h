// The orientation of a picture, from EXIF.
#pragma once

#include "images/byte_reader.h"

namespace plimsoll::images {

/// Tag 0x0112 of the first directory: 1 to 8. 1 where it is missing or anything is damaged.
/// `tiff` begins with the byte order, "II*\0" or "MM\0*".
int exif_orientation(Bytes tiff);

}  // namespace plimsoll::images
