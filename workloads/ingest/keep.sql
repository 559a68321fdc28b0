SELECT readings_keep(:kept);
