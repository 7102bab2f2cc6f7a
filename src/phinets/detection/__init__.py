"""Finding things in pictures: boxes, their precision, VOC's layout, and the C4 detector."""
