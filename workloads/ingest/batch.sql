\copyfrom readings :batch
